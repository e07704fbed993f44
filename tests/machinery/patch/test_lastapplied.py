import json
from typing import Any

import pytest

from machinery.patch.widgets import LATER, expected, stored, widget, write
from sully.machinery.errors import Conflict
from sully.machinery.patch.apply import apply
from sully.machinery.patch.ownership.lastapplied import ANNOTATION
from sully.machinery.patch.ownership.managed import track_update

Obj = dict[str, Any]


def client_side(spec: Obj, applied: Obj) -> Obj:
    annotations = {ANNOTATION: json.dumps(applied)}
    obj = widget(spec, annotations=annotations)
    return stored(obj, track_update(None, obj, write("kubectl-client-side-apply")))


def test_kubectl_takes_over_what_it_applied_before() -> None:
    live = client_side({"replicas": 1}, expected({"replicas": 1}))

    result = apply(live, expected({"replicas": 2}), write("kubectl", LATER))

    assert result.object["spec"]["replicas"] == 2
    text = result.object["metadata"]["annotations"][ANNOTATION]
    assert text.endswith("\n")
    assert json.loads(text) == expected({"replicas": 2})


STANDING: dict[str, tuple[Any, str]] = {
    "another user's apply": (expected({"replicas": 1}), "other"),
    "changed since": (expected({"replicas": 3}), "kubectl"),
    "another version": (expected({"replicas": 1}) | {"apiVersion": "v9"}, "kubectl"),
    "undeclared fields": (expected({"replicas": 1, "x": 1}), "kubectl"),
    "not an object": ([], "kubectl"),
}


@pytest.mark.parametrize(("applied", "manager"), STANDING.values(), ids=STANDING.keys())
def test_conflicts_with_client_side_apply_stand(applied: Obj, manager: str) -> None:
    live = client_side({"replicas": 1}, applied)

    with pytest.raises(Conflict, match="kubectl-client-side-apply"):
        apply(live, expected({"replicas": 2}), write(manager))


def test_too_large_for_the_annotation() -> None:
    live = client_side({"replicas": 1}, expected({"replicas": 1}))
    large = expected({"replicas": 2, "limits": {"a" * 100: "1"}, "args": ["x" * 300_000]})

    result = apply(live, large, write("kubectl", LATER))

    assert ANNOTATION not in result.object["metadata"]["annotations"]
