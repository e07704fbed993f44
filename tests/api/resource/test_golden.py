"""Replays recorded answers of a real server, where a folder of them is given (SULLY_GOLDEN)."""

import copy
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from api.resource.writing import NOW, REFERENCE, RESOURCES, TABLES, Writer, served
from sully.machinery.compat import Compat
from sully.machinery.formats.timestamps import format_time
from sully.machinery.serialization.decode import decode

_PATH = re.compile(
    r"/apis/resource\.k8s\.io/(?P<version>v1\w*)(/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[a-z]+)(/(?P<name>[^/]+))?(/(?P<sub>status))?"
)
# Answers that come from other parts of the server: metadata, queries, patches that do not apply.
_ELSEWHERE = ("metadata", "fieldManager", "force", "fieldValidation", "patch", "resourceVersion")


@dataclass(frozen=True)
class Step:
    writer: Writer
    kind: str
    body: dict[str, Any]
    old: dict[str, Any] | None
    sub: str
    code: int
    response: dict[str, Any]
    now: str


def _steps() -> Iterator[Any]:
    folder = os.environ.get("SULLY_GOLDEN")
    if not folder:
        return
    heads: dict[str, dict[str, Any]] = {}
    state: dict[Any, dict[str, Any]] = {}
    lines = (Path(folder) / "api.jsonl").read_text(encoding="utf-8").strip().split("\n")
    for line in lines:
        step = json.loads(line)
        if "step" not in step:
            heads[step["scenario"]] = step
            continue
        match = _PATH.fullmatch(step.get("path", ""))
        if match is None or match["plural"] not in RESOURCES:
            continue
        for mode in ("reference", "default"):
            result = _step(step, match, heads[step["scenario"]], state, mode)
            if result is not None:
                name = f"{step['scenario']}-{step['step']}-{mode}"
                yield pytest.param(result, id=name)
        _follow(step, match, state)


def _key(match: re.Match[str], name: str) -> tuple[str, str, str]:
    return (match["plural"], match["namespace"] or "", name)


def _follow(step: dict[str, Any], match: re.Match[str], state: dict[Any, Any]) -> None:
    """Remember what the server has stored, as far as its responses show."""
    response = step.get("response")
    if step.get("code") not in (200, 201) or "dryRun" in (step.get("query") or ""):
        return
    kind = RESOURCES[match["plural"]]
    if not isinstance(response, dict) or response.get("kind") != kind.kind:
        return
    version = served(kind, match["version"])
    obj = decode(response, TABLES.get(version.package, kind.kind), [])
    name = response["metadata"]["name"]
    state[_key(match, name)] = version.to_stored(obj) if version.to_stored else obj


def _step(
    step: dict[str, Any], match: re.Match[str], head: dict[str, Any], state: Any, mode: str
) -> Step | None:
    if step.get("code") not in (200, 201, 422):
        return None
    # Quirks are those of Kubernetes alone.
    if mode == "default" and "quirk" in str(step.get("tags")):
        return None
    kind = RESOURCES[match["plural"]]
    old = state.get(_key(match, match["name"])) if match["name"] else None
    body = _body(step, match, old)
    if mode == "default" and _has_equal_without_key(body):
        return None
    if body is None or (old is None) != (step["method"] == "POST"):
        return None
    causes = step["response"].get("details", {}).get("causes", [])
    if step["code"] == 422 and all(_elsewhere(cause) for cause in causes):
        return None
    at = datetime.fromtimestamp(step["end"], UTC)
    writer = Writer(
        version=match["version"],
        now=at,
        compat=Compat.named(mode),
        gates=REFERENCE if mode == "reference" else Writer().gates,
        namespaces={one["name"]: one["labels"] for one in head["namespaces"]},
    )
    body = {**body, "kind": kind.kind}
    sub = match["sub"] or ""
    return Step(writer, kind.kind, body, old, sub, step["code"], step["response"], format_time(at))


def _has_equal_without_key(value: Any) -> bool:
    """Report whether a body has a toleration that Kubernetes accepts and we do not."""
    if isinstance(value, list):
        return any(map(_has_equal_without_key, value))
    if not isinstance(value, dict):
        return False
    for toleration in value.get("tolerations") or ():
        if not toleration.get("key") and toleration.get("operator", "Equal") in ("", "Equal"):
            return True
    return any(map(_has_equal_without_key, value.values()))


def _elsewhere(cause: dict[str, str]) -> bool:
    return cause["field"].startswith(_ELSEWHERE)


def _body(step: dict[str, Any], match: re.Match[str], old: Any) -> dict[str, Any] | None:
    body = step.get("body")
    if not isinstance(body, dict) or "$repeat" in json.dumps(body):
        return None
    if step["method"] in ("POST", "PUT"):
        return body
    content = step.get("headers", {}).get("Content-Type", "")
    if step["method"] != "PATCH" or "merge-patch" not in content or "strategic" in content:
        return None
    if old is None:
        return None
    version = served(RESOURCES[match["plural"]], match["version"])
    start = version.from_stored(copy.deepcopy(old)) if version.from_stored else copy.deepcopy(old)
    merged = _merge(start, body)
    assert isinstance(merged, dict)
    return merged


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = _merge(target.get(name), value)
    return target


STEPS = list(_steps())

if STEPS:  # without the folder there is nothing to replay

    @pytest.mark.parametrize("step", STEPS)
    def test_answer_of_a_real_server(step: Step) -> None:
        if step.old is None:
            got = step.writer.create(step.body)
        else:
            got = step.writer.update(step.body, step.old, status=step.sub == "status")

        causes = [
            cause
            for cause in step.response.get("details", {}).get("causes", [])
            if not _elsewhere(cause)
        ]
        assert [
            {"reason": error.reason, "message": error.body, "field": error.field}
            for error in got.errors
        ] == causes
        if step.code != 422:
            assert _stored(step, got.obj) == _answered(step)


def _stored(step: Step, obj: dict[str, Any]) -> Any:
    version = served(
        next(r for r in RESOURCES.values() if r.kind == step.kind), step.writer.version
    )
    return _compared(version.from_stored(obj) if version.from_stored else obj, step.now)


def _answered(step: Step) -> Any:
    return _compared(step.response, step.now)


def _compared(obj: dict[str, Any], now: str) -> Any:
    """Leave what this test is about: spec, status, generation; the present is a stretch."""
    moment = datetime.fromisoformat(now)
    status = dict(obj.get("status") or {})
    # The eviction controller was running and wrote this in between.
    foreign = [one for one in status.pop("conditions", ()) if one["type"] != "EvictionInProgress"]
    status |= {"conditions": foreign} if foreign else {}
    text = json.dumps({"spec": obj["spec"], "status": status}, sort_keys=True)
    for offset in (-1, 0, 1):
        text = text.replace(format_time(moment + timedelta(seconds=offset)), "now")
    return json.loads(text), obj["metadata"].get("generation")


def _world_objects() -> Iterator[Any]:
    folder = os.environ.get("SULLY_GOLDEN")
    if not folder:
        return
    lines = (Path(folder) / "worlds.jsonl").read_text(encoding="utf-8").strip().split("\n")
    for line in lines:
        world = json.loads(line)
        bodies = [one for one in world["setup"] if "resource.k8s.io" in one.get("apiVersion", "")]
        namespaces = {
            one["metadata"]["name"]: one["metadata"].get("labels", {})
            for one in world["setup"]
            if one["kind"] == "Namespace"
        }
        yield pytest.param(bodies, namespaces, id=f"world-{world['seed']}")


WORLDS = list(_world_objects())

if WORLDS:  # without the folder there is nothing to replay

    @pytest.mark.parametrize(("bodies", "namespaces"), WORLDS)
    def test_objects_of_recorded_worlds_are_accepted(
        bodies: list[dict[str, Any]], namespaces: dict[str, dict[str, str]]
    ) -> None:
        for body in bodies:
            timed = json.loads(re.sub(r'\{"\$now": -?\d+\}', f'"{NOW}"', json.dumps(body)))
            version = body["apiVersion"].rpartition("/")[2]

            writer = Writer(
                version=version, gates=REFERENCE, compat=Compat.KUBERNETES, namespaces=namespaces
            )

            got = writer.create(timed)

            assert got.texts == []
