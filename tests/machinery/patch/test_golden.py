"""Recorded writes of a real API server: our managedFields and conflicts must be the same.

Only runs where the recordings are at hand (SULLY_GOLDEN names their folder).
"""

import json
import os
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
import yaml

from sully.machinery.errors import ApiError
from sully.machinery.patch.apply import apply
from sully.machinery.patch.ownership.fieldset import FieldSet
from sully.machinery.patch.ownership.managed import Write, track_update
from sully.machinery.schema import ObjectType, Tables
from sully.machinery.serialization.decode import decode

Obj = dict[str, Any]

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
STATUS = FieldSet.of(("status",))
SPEC = FieldSet.of(("spec",), ("metadata",))
POD_STATUS = FieldSet.of(
    ("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")
)
# Admission and strategies fill these in after ownership is recorded.
FILLED_LATER = {
    "Pod": (
        "preemptionPolicy",
        "priority",
        "serviceAccount",
        "serviceAccountName",
        "tolerations",
        "volumes",
    ),
    "Namespace": ("finalizers",),
}
# What happened between these steps was not recorded.
UNKNOWN_STATE = {("watch-pods", 5)}
# The strategy undoes what the client wrote, but its ownership stays recorded.
UNDONE = {("pod-status", 8)}


def load_tables() -> Tables:
    tables = Tables()
    for group in sorted(resources.files("sully.api").iterdir(), key=lambda group: group.name):
        if not group.is_dir():
            continue
        texts = {f.name: f.read_text() for f in group.iterdir() if f.name.endswith(".fields")}
        changed = texts.pop("v1beta1.fields", None)
        versions = ("v1", "v1beta1", "v1beta2", "v1alpha3") if changed else ("v1",)
        for version in versions:
            package = META if group.name == "meta" else f"io.k8s.api.{group.name}.{version}"
            for text in [*texts.values(), *([changed] if changed and version == "v1beta1" else [])]:
                tables.load(package, group.name, text)
    return tables


def scenarios() -> dict[str, list[Obj]]:
    folder = os.environ.get("SULLY_GOLDEN")
    result: dict[str, list[Obj]] = {}
    if folder:
        for line in (Path(folder) / "api.jsonl").read_text().split("\n"):
            step = json.loads(line or "{}")
            if "step" in step and "dryRun" not in step.get("query", ""):
                result.setdefault(step["scenario"], []).append(step)
    return result


SCENARIOS = scenarios()
TABLES = load_tables() if SCENARIOS else Tables()


def schema_of(obj: Obj) -> ObjectType:
    group, _, version = obj["apiVersion"].rpartition("/")
    return TABLES.get(f"io.k8s.api.{(group or 'core').split('.')[0]}.{version}", obj["kind"])


def before_admission(answer: Obj, body: Any) -> Obj:
    """Return a created object as it was when its ownership was recorded."""
    spec = answer.get("spec")
    if not isinstance(body, dict) or spec is None:
        return answer
    source = body.get("spec") or {}
    later = [name for name in FILLED_LATER.get(answer["kind"], ()) if name not in source]
    spec = {name: value for name, value in spec.items() if name not in later}
    if "containers" in spec:
        spec["containers"] = [
            {k: v for k, v in container.items() if k != "volumeMounts" or k in asked}
            for container, asked in zip(spec["containers"], source["containers"], strict=True)
        ]
    return {**answer, "spec": spec}


def is_tracked(step: Obj) -> bool:
    answer = step.get("response")
    place = (step["scenario"], step["step"])
    return (
        step.get("method") in ("POST", "PUT", "PATCH")
        and isinstance(answer, dict)
        and place not in UNKNOWN_STATE | UNDONE
        and (bool(answer.get("metadata", {}).get("uid")) or is_refused_apply(step))
    )


def is_refused_apply(step: Obj) -> bool:
    message = str(step["response"].get("message"))
    return is_apply(step) and message.startswith(("Apply failed", "failed to create typed"))


def is_apply(step: Obj) -> bool:
    return str(step.get("headers", {}).get("Content-Type")).startswith("application/apply")


def write_of(step: Obj, schema: ObjectType, version: str, times: list[str]) -> Write:
    last = step["path"].rsplit("/", 1)[-1]
    subresource = last if last == "status" else ""
    reset = STATUS
    if subresource:
        reset = POD_STATUS if schema.name == "Pod" else SPEC
    manager = dict(parse_qsl(step.get("query", ""))).get("fieldManager", "golden")
    return Write(manager, version, schema, max(times, default=""), subresource, reset)


def recomputed(step: Obj, live: Obj | None) -> Any:
    """Do what the recorded server did; return managedFields or an error text."""
    answer = step["response"]
    if not is_apply(step):
        schema = schema_of(answer)
        entries = answer["metadata"].get("managedFields", [])
        times = [entry["time"] for entry in entries if "time" in entry]
        new = before_admission(answer, step.get("body")) if live is None else answer
        metadata = {k: v for k, v in new["metadata"].items() if k != "managedFields"}
        write = write_of(step, schema, answer["apiVersion"], times)
        return track_update(live, {**new, "metadata": metadata}, write)
    body = yaml.safe_load(step["bodyText"])
    entries = answer.get("metadata", {}).get("managedFields", [])
    times = [entry["time"] for entry in entries if "time" in entry]
    write = write_of(step, schema_of(body), body["apiVersion"], times)
    force = dict(parse_qsl(step.get("query", ""))).get("force") == "true"
    try:
        result = apply(live, body, write, force=force)
    except ApiError as error:
        return error.to_status()
    if not write.subresource:
        spec = decode(result.object, write.schema, []).get("spec")
        assert spec == answer.get("spec")
    return result.managed_fields


def sort_key(entry: Obj) -> str:
    return json.dumps(entry, sort_keys=True)


if SCENARIOS:

    @pytest.mark.parametrize("steps", SCENARIOS.values(), ids=SCENARIOS.keys())
    def test_replay(steps: list[Obj]) -> None:
        live: dict[str, Obj] = {}
        for step in steps:
            answer: Any = step.get("response")
            if is_tracked(step):
                name = step["path"].removesuffix("/status").rsplit("/", 1)[-1]
                known = live.get(name) if step["method"] != "POST" else None
                if known and "apiVersion" in answer and answer.get("kind") != "Status":
                    # Kinds recorded in several versions have one shape for what is compared here.
                    known = {**known, "apiVersion": answer["apiVersion"]}
                got = recomputed(step, known)
                if answer["kind"] == "Status":
                    assert got == answer, step["step"]
                else:
                    want = answer["metadata"].get("managedFields", [])
                    assert sorted(got, key=sort_key) == sorted(want, key=sort_key), step["step"]
            if isinstance(answer, dict) and answer.get("metadata", {}).get("uid"):
                live[answer["metadata"]["name"]] = answer
