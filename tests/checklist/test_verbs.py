"""Every verb on every kind about devices, and what a user who watches hears after each step.

A watch with a label selector is open all the time; beside the object there is a second one without
the label, of which it must never hear.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from api.resource.bodies import (
    claim_body,
    device,
    exactly,
    patch_body,
    rule_body,
    slice_body,
    template_body,
)
from serving import APPLY, MERGE, STRATEGIC, Asgi, Obj, local, types_and_names
from sully.machinery.serialization.codec import copy

GROUP = "/apis/resource.k8s.io"
LABEL = {"checked": "yes"}
VERBS = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
ALLOCATION: Obj = {"allocation": {"devices": {}}}


def _condition(kind: str) -> Obj:
    at = "2030-01-01T00:00:00Z"
    return {"type": kind, "status": "True", "reason": "R", "message": "", "lastTransitionTime": at}


CONDITIONS = {"conditions": [_condition("example.com/Foreign")]}


@dataclass(frozen=True)
class Case:
    """A kind, what may be changed in it, and the parts of its status."""

    plural: str
    body: Obj
    version: str = "v1"
    namespace: str = ""
    spec: Obj = field(default_factory=dict)
    status: Obj = field(default_factory=dict)

    @property
    def path(self) -> str:
        place = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{GROUP}/{self.version}{place}/{self.plural}"

    @property
    def listed(self) -> str:
        return f"{GROUP}/{self.version}"


RULE = rule_body()
KEY = {"taint": {"key": "example.com/other"}}
CASES = {
    "rules": Case("devicetaintrules", RULE, spec=KEY, status=CONDITIONS),
    "rules, v1beta2": Case(
        "devicetaintrules", RULE, version="v1beta2", spec=KEY, status=CONDITIONS
    ),
    "rules, v1alpha3": Case(
        "devicetaintrules", RULE, version="v1alpha3", spec=KEY, status=CONDITIONS
    ),
    "patches": Case(
        "resourceslicepatches",
        patch_body(attributes={"a.dev/b": {"int": 1}}),
        version="v1alpha3",
        spec={"devices": {"attributes": {"a.dev/b": {"int": 2}}}},
        status=CONDITIONS,
    ),
    "slices": Case("resourceslices", slice_body(device()), spec={"devices": [device("e")]}),
    "classes": Case(
        "deviceclasses",
        {"kind": "DeviceClass", "metadata": {}, "spec": {}},
        spec={"selectors": [{"cel": {"expression": "true"}}]},
    ),
    "claims": Case("resourceclaims", claim_body(exactly()), namespace="default", status=ALLOCATION),
    "templates": Case("resourceclaimtemplates", template_body(exactly()), namespace="default"),
}


def _named(case: Case, name: str, **metadata: Any) -> Obj:
    made: Obj = copy(case.body)
    made["apiVersion"] = f"resource.k8s.io/{case.version}"
    made["metadata"] = {"name": name, **metadata}
    return made


class ObjectLife:
    """One object that lives through every verb, and what a watch reports about it."""

    def __init__(self, case: Case, server: Asgi, heard: Any) -> None:
        self.case, self.server, self._heard, self._seen = case, server, heard, 0

    @property
    def at(self) -> str:
        return f"{self.case.path}/one"

    async def hears(self, *types: str) -> None:
        """Change it as another user; then the watch must have reported this, and nothing else."""
        beside = {"metadata": {"annotations": {"seen": str(self._seen)}}}
        (await self.server.patch(f"{self.case.path}/other", beside)).ok()
        self._seen += len(types)
        events = await self._heard.until(lambda item: len(item.events) >= self._seen)

        assert types_and_names(events)[self._seen - len(types) :] == [
            (type_, "one") for type_ in types
        ]
        assert len(events) == self._seen

    async def create_and_read(self) -> None:
        made = (await self.server.post(self.case.path, _named(self.case, "one", labels=LABEL))).ok(
            201
        )
        await self.hears("ADDED")
        body = (await self.server.get(self.at)).ok()
        listed = (await self.server.get(self.case.path, labelSelector="checked=yes")).ok()

        assert body == made
        assert [item["metadata"]["name"] for item in listed["items"]] == ["one"]

    async def replace(self) -> None:
        body = (await self.server.get(self.at)).ok()
        body["metadata"]["annotations"] = {"written": "whole"}
        (await self.server.put(self.at, body)).ok(200)
        await self.hears("MODIFIED")

    async def patch(self, media: str, change: Obj, part: str = "") -> Obj:
        """Patch in one of the ways there are; apply states the field manager, too."""
        query = {"fieldManager": "checking", "force": "true"} if media == APPLY else {}
        body = dict(change)
        if media == APPLY:
            head = {"apiVersion": f"resource.k8s.io/{self.case.version}"}
            metadata = {"name": "one"} | change.get("metadata", {})
            body = head | {"kind": self.case.body["kind"]} | body | {"metadata": metadata}
        answer = await self.server.patch(f"{self.at}{part}", body, media, **query)
        await self.hears("MODIFIED")
        changed: Obj = answer.ok()
        return changed

    async def patch_everything(self) -> None:
        for number, media in enumerate((STRATEGIC, MERGE, APPLY)):
            mark = {"annotations": {"patched": str(number)}}
            changed = await self.patch(media, {"metadata": mark})
            assert changed["metadata"]["annotations"]["patched"] == str(number)
        if self.case.spec:
            await self._patch_spec()

    async def _patch_spec(self) -> None:
        before = (await self.server.get(self.at)).ok()["spec"]
        for media in (STRATEGIC, MERGE, APPLY):
            changed = await self.patch(media, {"spec": self._whole(media, before)})
            assert _within(self.case.spec, changed["spec"])
            body = (await self.server.get(self.at)).ok()
            (await self.server.put(self.at, body | {"spec": before})).ok()
            await self.hears("MODIFIED")

    def _whole(self, media: str, before: Obj) -> Obj:
        """An apply has all of it."""
        return _merged(before, self.case.spec) if media == APPLY else self.case.spec

    async def write_status(self) -> None:
        at, status = f"{self.at}/status", self.case.status
        if not status:
            assert (await self.server.get(at)).code == 404
            return
        body = (await self.server.get(at)).ok()
        spec, labels = body["spec"], body["metadata"]["labels"]
        sent = body | {"status": status, "metadata": body["metadata"] | {"labels": {}}}
        written = (await self.server.put(at, sent)).ok(200)
        await self.hears("MODIFIED")

        assert (written["spec"], written["metadata"]["labels"]) == (spec, labels)
        assert written["status"] == status
        if "conditions" in status:
            await self._patch_status()

    async def _patch_status(self) -> None:
        for kind, media in (("a/S", STRATEGIC), ("a/M", MERGE), ("a/A", APPLY)):
            expected = [_condition(kind)]
            changed = await self.patch(media, {"status": {"conditions": expected}}, "/status")
            kinds = [condition["type"] for condition in changed["status"]["conditions"]]
            # A merge patch knows no lists by key: it replaces them.
            assert kind in kinds
            assert (kinds == [kind]) is (media == MERGE)

    async def delete(self) -> None:
        (await self.server.delete(self.at)).ok(200)
        await self.hears("DELETED")
        assert (await self.server.get(self.at)).code == 404

    async def delete_by_label(self) -> None:
        (await self.server.post(self.case.path, _named(self.case, "one", labels=LABEL))).ok(201)
        (await self.server.delete(self.case.path, labelSelector="checked=yes")).ok(200)
        await self.hears("ADDED", "DELETED")
        left = (await self.server.get(self.case.path)).ok()["items"]
        assert [item["metadata"]["name"] for item in left] == ["other"]


def _within(part: Any, whole: Any) -> bool:
    if not isinstance(part, dict):
        return bool(part == whole)
    return all(name in whole and _within(value, whole[name]) for name, value in part.items())


def _merged(into: Any, change: Any) -> Any:
    if not isinstance(into, dict) or not isinstance(change, dict):
        return change
    return into | {name: _merged(into.get(name), value) for name, value in change.items()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_an_object_lives_through_every_verb(case: Case) -> None:
    async with local() as server:
        (await server.post(case.path, _named(case, "other"))).ok(201)
        listed = (await server.get(case.path)).ok()["metadata"]["resourceVersion"]
        query = {"labelSelector": "checked=yes", "resourceVersion": listed}
        async with server.watch(case.path, **query) as heard:
            visit = ObjectLife(case, server, heard)
            await visit.create_and_read()
            await visit.replace()
            await visit.patch_everything()
            await visit.write_status()
            await visit.delete()
            await visit.delete_by_label()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_discovery_names_every_verb(case: Case) -> None:
    async with local() as server:
        resources = (await server.get(case.listed)).ok()["resources"]
    verbs = {item["name"]: set(item["verbs"]) for item in resources}

    assert verbs[case.plural] == VERBS
    assert (f"{case.plural}/status" in verbs) is bool(case.status)
    if case.status:
        assert verbs[f"{case.plural}/status"] == {"get", "patch", "update"}


@pytest.mark.parametrize(("version", "code"), [("v1", 422), ("v1beta2", 200), ("v1alpha3", 200)])
async def test_who_replaces_a_rule_without_its_version(version: str, code: int) -> None:
    path = f"{GROUP}/{version}/devicetaintrules"
    async with local() as server:
        made = (await server.post(path, RULE)).ok(201)
        del made["metadata"]["resourceVersion"]
        answer = await server.put(f"{path}/x", made)

    assert answer.code == code
    if code == 422:
        assert answer.message.endswith(
            "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        )


async def test_what_a_client_cannot_report_about_a_rule() -> None:
    path, generation = f"{GROUP}/v1/devicetaintrules", {"generation": 42}
    sent = RULE | {"status": CONDITIONS, "metadata": RULE["metadata"] | generation}
    async with local() as server:
        bad = await server.post(path, RULE | {"metadata": {"name": "Bad_Name"}})
        made = (await server.post(path, sent)).ok(201)
        renamed = await server.put(
            f"{path}/x", made | {"metadata": made["metadata"] | {"name": "y"}}
        )
        written = (await server.put(f"{path}/x", made | {"status": CONDITIONS})).ok(200)

    assert (bad.code, bad.json["details"]["causes"][0]["field"]) == (422, "metadata.name")
    assert (made["metadata"]["generation"], made.get("status", {})) == (1, {})
    assert (renamed.code, renamed.json["reason"]) == (400, "BadRequest")
    assert written.get("status", {}) == {}


async def test_a_key_of_kubernetes_is_answered_with_a_warning() -> None:
    taints: Obj = {"key": "kubernetes.io/broken", "effect": "NoSchedule"}
    bodies = {
        "devicetaintrules": rule_body(**taints),
        "resourceslices": slice_body(device(taints=[taints])),
    }
    async with local() as server:
        for plural, body in bodies.items():
            answer = await server.post(f"{GROUP}/v1/{plural}", body)

            assert answer.code == 201
            assert any("kubernetes.io/broken" in warning for warning in answer.warnings), plural
