"""Replays recorded answers of a real server, where a folder of them is given (SULLY_GOLDEN)."""

import copy
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from api.core.writing import RESOURCES, TABLES, World, cells, create, served, stored_form, update
from sully.api.core.pods.updates.binding import bind_pod, check_binding
from sully.api.policy.eviction import Eviction, check_eviction, decide_eviction
from sully.machinery.errors import ApiError
from sully.machinery.formats.timestamps import format_time
from sully.machinery.patch.json_patch import apply_json_patch
from sully.machinery.patch.merge_patch import apply_merge_patch
from sully.machinery.patch.strategic import apply_strategic_merge_patch

_PATH = re.compile(
    r"(/api|/apis/(?P<group>[^/]+))/v1(/namespaces/(?P<namespace>[^/]+)(?=/[a-z]))?"
    r"/(?P<plural>[a-z]+)(/(?P<name>[^/]+))?(/(?P<sub>[a-z]+))?"
)
_SUFFIX = re.compile(r"kube-api-access-(\w{5})")
# Metadata is the server's business; what strategies do there is compared below.
_OWN_METADATA = ("generation", "labels", "annotations")


@dataclass(frozen=True)
class Step:
    key: tuple[str, str]
    place: tuple[str, str]
    sub: str
    request: dict[str, Any]
    objects: dict[tuple[str, str, str], Any]

    @property
    def code(self) -> int:
        return int(self.request["code"])

    @property
    def response(self) -> Any:
        return self.request["response"]

    def world(self) -> World:
        suffix = _SUFFIX.search(json.dumps(self.response))
        now = datetime.fromtimestamp(int(self.request["at"]), UTC)
        return World(now, self.objects, suffix[1] if suffix else "xxxxx", strict=True)

    def body(self) -> dict[str, Any]:
        body = copy.deepcopy(_expanded(self.request["body"]))
        if self.place[0]:
            body.setdefault("metadata", {}).setdefault("namespace", self.place[0])
        return body

    def old(self) -> Any:
        resource = RESOURCES[self.key]
        return self.objects.get((resource.storage_key, *self.place))


def _expanded(value: Any) -> Any:
    """Write out strings that the recording abbreviates."""
    if isinstance(value, dict):
        if set(value) == {"$repeat"}:
            text, count = value["$repeat"]
            return text * count
        return {name: _expanded(item) for name, item in value.items()}
    return [_expanded(item) for item in value] if isinstance(value, list) else value


def _steps() -> Iterator[tuple[str, Step]]:
    folder = os.environ.get("SULLY_GOLDEN")
    if not folder:
        return
    objects: dict[tuple[str, str, str], Any] = {}
    lines = (Path(folder) / "api.jsonl").read_text(encoding="utf-8").strip().split("\n")
    for line in lines:
        request = json.loads(line)
        for namespace in request.get("namespaces", ()):
            made = create("namespaces", {"metadata": namespace}).obj
            objects["namespaces", "", namespace["name"]] = made
        match = _PATH.fullmatch(request.get("path", ""))
        key = ((match["group"] or ""), match["plural"]) if match else ("", "")
        # The device kinds have recordings, and tests, of their own.
        if match is None or key not in RESOURCES or key[0] == "resource.k8s.io":
            continue
        place = (match["namespace"] or "", match["name"] or "")
        step = Step(key, place, match["sub"] or "", request, dict(objects))
        yield f"{request['scenario']}-{request['step']}", step
        _remember(step, objects)


def _remember(step: Step, objects: dict[tuple[str, str, str], Any]) -> None:
    """Keep what the server has stored, as far as its responses show."""
    response = step.request.get("response")
    resource = RESOURCES[step.key]
    if step.request.get("code") not in (200, 201) or "dryRun" in (step.request.get("query") or ""):
        return
    if isinstance(response, dict) and response.get("kind") == resource.kind:
        name = response["metadata"]["name"]
        place = (resource.storage_key, step.place[0], name)
        objects[place] = stored_form(resource, response)
    elif step.sub == "binding":
        bound = bind_pod(step.old(), step.body(), step.world().context())
        objects[resource.storage_key, *step.place] = bound


STEPS = dict(_steps())


def _of(*methods: str, sub: tuple[str, ...], codes: tuple[int, ...]) -> Any:
    chosen = {
        name: step
        for name, step in STEPS.items()
        if step.request["method"] in methods
        and (step.sub in sub and step.code in codes)
        and "apply" not in str(step.request.get("headers"))  # apply is the server's part
    }
    return pytest.mark.parametrize("step", chosen.values(), ids=chosen.keys())


def _compare(step: Step, obj: Any, problems: list[Any]) -> None:
    if step.code == 422:
        causes = step.response["details"].get("causes", [])
        mine = [c for c in causes if not c["field"].startswith(("metadata.name", "metadata.uid"))]
        got = [{"reason": p.reason, "message": p.body, "field": p.field} for p in problems]
        assert got == mine
        return
    assert [str(problem) for problem in problems] == []
    assert _content(served(RESOURCES[step.key], obj)) == _content(step.response)


def _content(obj: Any) -> Any:
    rest = {k: v for k, v in obj.items() if k not in ("metadata", "kind", "apiVersion")}
    results = {name: obj["metadata"].get(name) for name in _OWN_METADATA}
    return {"metadata": results, **rest}


def _patched(step: Step) -> Any:
    patch, old = step.request["body"], copy.deepcopy(step.old())
    resource = RESOURCES[step.key]
    kind = step.request["headers"]["Content-Type"]
    if kind == "application/json-patch+json":
        return apply_json_patch(old, patch)
    if kind == "application/merge-patch+json":
        return apply_merge_patch(old, patch)
    schema = TABLES.get(resource.storage_version.package, resource.kind)
    return apply_strategic_merge_patch(old, patch, schema)


def _answer(step: Step, act: Any) -> Any:
    try:
        return act()
    except ApiError as error:
        return error.to_status()


class TestRecordings:
    """Collected only where there are recordings."""

    __test__ = bool(STEPS)

    @_of("POST", sub=("",), codes=(201, 422))
    def test_create(self, step: Step) -> None:
        written = create(step.key[1], step.body(), step.world(), step.key[0])

        _compare(step, written.obj, written.problems)

    @_of("PUT", sub=("", "status"), codes=(200, 422))
    def test_update(self, step: Step) -> None:
        group, plural = step.key
        old, world = step.old(), step.world()
        written = update(plural, step.body(), old, world, group=group, sub=step.sub)

        _compare(step, written.obj, written.problems)

    @_of("PATCH", sub=("", "status"), codes=(200, 422))
    def test_patch(self, step: Step) -> None:
        group, plural = step.key
        old, world = step.old(), step.world()
        written = update(plural, _patched(step), old, world, group=group, sub=step.sub)

        _compare(step, written.obj, written.problems)

    @_of("POST", sub=("binding",), codes=(201, 400, 409, 500))
    def test_binding(self, step: Step) -> None:
        world, body = step.world(), {"metadata": {}, "target": {}, **step.body()}

        def act() -> Any:
            check_binding(step.place[1], body, world.context())
            return bind_pod(step.old(), body, world.context())

        got = _answer(step, act)
        if step.code == 201:
            assert got["spec"]["nodeName"] == body["target"]["name"]
            scheduled = {
                "type": "PodScheduled",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": format_time(world.now),
            }
            assert got["status"]["conditions"] == [scheduled]
        else:
            assert got == step.response

    @_of("POST", sub=("eviction",), codes=(201, 400, 429, 500))
    def test_eviction(self, step: Step) -> None:
        world, body = step.world(), step.body()
        budgets = [
            budget
            for (kind, namespace, _), budget in step.objects.items()
            if kind == "policy/poddisruptionbudgets" and namespace == step.place[0]
        ]

        def act() -> Any:
            check_eviction(step.place[1], body)
            return decide_eviction(step.old(), budgets, world.context())

        got = _answer(step, act)
        assert isinstance(got, Eviction) if step.code == 201 else got == step.response

    @_of("GET", sub=("",), codes=(200,))
    def test_table(self, step: Step) -> None:
        response = step.response if "response" in step.request else {}
        if response.get("kind") != "Table":
            return
        columns = RESOURCES[step.key].columns
        shown = ("name", "type", "format", "priority")
        want = [tuple(c[name] for name in shown) for c in response["columnDefinitions"]]
        assert [(c.name, c.type, c.format, c.priority) for c in columns] == want
        for row in response["rows"]:
            name = row["object"]["metadata"]["name"]
            place = (RESOURCES[step.key].storage_key, step.place[0], name)
            got = cells(step.key[1], step.objects[place], step.world(), step.key[0])
            age = [c.name for c in columns].index("Age")
            assert [c for i, c in enumerate(got.values()) if i != age] == [
                c for i, c in enumerate(row["cells"]) if i != age
            ]
