"""Label keys of a new pod are merged into the selectors beside them, as Kubernetes does it."""

from typing import Any

import pytest

from api.core.bodies import Obj, pod
from api.core.writing import create

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
LABELS = {"app": "web", "rev": "2"}
IN: Obj = {"key": "rev", "operator": "In", "values": ["2"]}
OWN: Obj = {"key": "x", "operator": "Exists"}

MERGED: dict[str, tuple[Obj, list[Obj] | None]] = {
    "nothing to merge": ({}, None),
    "pods of the same revision": ({"matchLabelKeys": ["rev"]}, [IN]),
    "a label that the pod does not have": ({"matchLabelKeys": ["zone"]}, None),
    "pods of other revisions": (
        {"mismatchLabelKeys": ["rev"]},
        [IN | {"operator": "NotIn"}],
    ),
    "after those that it has": (
        {"matchLabelKeys": ["rev"], "labelSelector": {"matchExpressions": [OWN]}},
        [OWN, IN],
    ),
}


def created(**spec: Any) -> Obj:
    body = pod(**spec)
    body["metadata"]["labels"] = LABELS
    made: Obj = create("pods", body).obj["spec"]
    return made


@pytest.mark.parametrize(("more", "want"), MERGED.values(), ids=MERGED.keys())
@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_affinity(kind: str, more: Obj, want: list[Obj] | None) -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **more}
    preferred = {"weight": 1, "podAffinityTerm": term}
    result = created(affinity={kind: {REQUIRED: [term], PREFERRED: [preferred]}})["affinity"][kind]

    assert result[REQUIRED][0]["labelSelector"].get("matchExpressions") == want
    chosen = result[PREFERRED][0]["podAffinityTerm"]["labelSelector"]
    assert chosen.get("matchExpressions") == want


def test_spread() -> None:
    constraint = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["rev"],
    }
    (result,) = created(topologySpreadConstraints=[constraint])["topologySpreadConstraints"]

    assert result["labelSelector"] == {"matchLabels": {"app": "web"}, "matchExpressions": [IN]}


def test_without_a_selector() -> None:
    term = {"topologyKey": "zone", "matchLabelKeys": ["rev"]}
    pod_affinity = created(affinity={"podAffinity": {REQUIRED: [term]}})["affinity"]["podAffinity"]

    assert "labelSelector" not in pod_affinity[REQUIRED][0]
