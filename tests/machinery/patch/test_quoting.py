"""The order of keys in the text of a patched object: where no patch was, that of Go's structs."""

from dataclasses import dataclass
from typing import Any

import pytest

from sully.api import build_scheme
from sully.machinery.patch.json_patch import apply_json_patch
from sully.machinery.patch.merge_patch import apply_merge_patch
from sully.machinery.patch.quoting import json_patched, merge_patched

REQUEST = {"exactly": {"count": 1, "deviceClassName": "x"}, "name": "r"}
CLAIM = {
    "metadata": {"labels": {"b": "2", "a": "1"}, "name": "c"},
    "spec": {"devices": {"requests": [REQUEST]}},
}


@dataclass(frozen=True)
class Case:
    patch: Any
    metadata: str = '{"name":"c","labels":{"a":"1","b":"2"}}'
    request: str = '{"name":"r","exactly":{"deviceClassName":"x","count":1}}'
    beside: str = ""

    @property
    def want(self) -> str:
        devices = f'{{"requests":[{self.request}]}}'
        return f'{{"metadata":{self.metadata},"spec":{{"devices":{devices}{self.beside}}}}}'


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


CASES = {
    "a merge patch sorts what it enters": Case(
        {"metadata": {"zone": 1}},
        metadata='{"labels":{"a":"1","b":"2"},"name":"c","zone":1}',
    ),
    "a merge patch sorts what it brings": Case(
        {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"z": 2, "count": 1}}]}}},
        request='{"exactly":{"count":1,"z":2},"name":"r"}',
    ),
    "a JSON patch leaves what it brings as it was sent": Case(
        [add("/spec/what", {"z": 1, "a": 2})],
        beside=',"what":{"z":1,"a":2}',
    ),
    "a JSON patch sorts lists and objects on its way": Case(
        [add("/spec/devices/requests/0/exactly/zone", 1)],
        request='{"exactly":{"count":1,"deviceClassName":"x","zone":1},"name":"r"}',
    ),
    "a JSON patch sorts what it brought and then enters": Case(
        [add("/spec/what", {"z": 1, "a": {"y": 1, "b": 2}}), add("/spec/what/c", 3)],
        beside=',"what":{"a":{"y":1,"b":2},"c":3,"z":1}',
    ),
    "a test sorts what it compares": Case(
        [{"op": "test", "path": "/spec", "value": CLAIM["spec"]}],
        request='{"exactly":{"count":1,"deviceClassName":"x"},"name":"r"}',
    ),
    "steps are unescaped": Case(
        [add("/metadata/labels/x~1y~0", {"z": 1, "a": 2})],
        metadata='{"labels":{"a":"1","b":"2","x/y~":{"z":1,"a":2}},"name":"c"}',
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_order_of_keys(case: Case) -> None:
    scheme = build_scheme()
    resource = scheme.by_kind("resource.k8s.io", "v1", "ResourceClaim")
    assert resource is not None
    is_list = isinstance(case.patch, list)
    run, show = (apply_json_patch, json_patched) if is_list else (apply_merge_patch, merge_patched)
    changed = run(CLAIM, case.patch)

    got = show(changed, scheme.schema(resource, "v1"), case.patch)

    assert got == case.want
