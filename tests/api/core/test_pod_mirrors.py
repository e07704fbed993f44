"""Pods that a node runs by itself stay what they are, and use nothing."""

import copy
from typing import Any

import pytest

from api.core.bodies import pod
from api.core.writing import create, update
from sully.machinery.errors import Forbidden

Obj = dict[str, Any]
MIRROR = "kubernetes.io/config.mirror"
AT = f"metadata.annotations[{MIRROR}]"


def _mirror(**spec: Any) -> Obj:
    body = pod(**{"nodeName": "n1"} | spec)
    body["metadata"]["annotations"] = {MIRROR: "x"}
    return body


CHANGES: dict[str, tuple[Obj, Obj, list[str]]] = {
    "same": ({MIRROR: "x"}, {MIRROR: "x", "other": "y"}, []),
    "removed": (
        {MIRROR: "x"},
        {},
        [f"{AT}: Forbidden: may not remove or update mirror pod annotation"],
    ),
    "changed": (
        {MIRROR: "x"},
        {MIRROR: "y"},
        [f"{AT}: Forbidden: may not remove or update mirror pod annotation"],
    ),
    "added": ({}, {MIRROR: "x"}, [f"{AT}: Forbidden: may not add mirror pod annotation"]),
}


@pytest.mark.parametrize("subresource", ["", "status"])
@pytest.mark.parametrize(("before", "after", "want"), CHANGES.values(), ids=CHANGES.keys())
def test_the_annotation_stays(before: Obj, after: Obj, want: list[str], subresource: str) -> None:
    body = pod(nodeName="n1")
    body["metadata"]["annotations"] = before
    old = create("pods", body).obj
    new = copy.deepcopy(old)
    new["metadata"]["annotations"] = after

    assert update("pods", new, old, sub=subresource).texts() == want


def test_a_mirror_is_of_a_node() -> None:
    text = "must set spec.nodeName if mirror pod annotation is set"

    assert create("pods", _mirror(nodeName="")).texts() == [f'{AT}: Invalid value: "x": {text}']


USES: dict[str, tuple[Obj, str]] = {
    "account": ({"serviceAccountName": "a"}, "may not reference service accounts"),
    "secret": ({"imagePullSecrets": [{"name": "s"}]}, "may not reference secrets"),
    "token": (
        {
            "volumes": [
                {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
            ]
        },
        "may not use ServiceAccountToken volume projections",
    ),
}


@pytest.mark.parametrize(("spec", "want"), USES.values(), ids=USES.keys())
def test_a_mirror_uses_nothing_whoever_creates_it(spec: Obj, want: str) -> None:
    with pytest.raises(Forbidden, match=f"a mirror pod {want}"):
        create("pods", _mirror(**spec))
