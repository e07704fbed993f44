"""Merges `matchLabelKeys` and `mismatchLabelKeys` of a new pod into the selectors beside them.

The values are those of the pod's own labels, so a selector then means pods of the same revision.
"""

from collections.abc import Iterator
from typing import Any

from sully.api.core.pods.spec.scheduling import PREFERRED, REQUIRED

Obj = dict[str, Any]
_OPERATORS = {"matchLabelKeys": "In", "mismatchLabelKeys": "NotIn"}


def merge_label_keys(pod: Obj) -> None:
    """Add the requirements that label keys stand for."""
    spec, labels = pod["spec"], pod["metadata"].get("labels") or {}
    for term in (*_affinity_terms(spec), *(spec.get("topologySpreadConstraints") or ())):
        selector = term.get("labelSelector")
        if selector is None:
            continue
        requirements = [
            {"key": key, "operator": operator, "values": [labels[key]]}
            for field, operator in _OPERATORS.items()
            for key in term.get(field) or ()
            if key in labels
        ]
        if requirements:
            own = selector.get("matchExpressions") or ()
            term["labelSelector"] = {**selector, "matchExpressions": [*own, *requirements]}


def _affinity_terms(spec: Obj) -> Iterator[Obj]:
    affinity = spec.get("affinity") or {}
    for name in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(name) or {}
        yield from terms.get(REQUIRED) or ()
        yield from (preferred["podAffinityTerm"] for preferred in terms.get(PREFERRED) or ())
