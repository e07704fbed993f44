"""Warnings about the labels by which a pod selects nodes, other pods and volumes."""

from collections.abc import Iterator
from typing import Any

from sully.machinery.fields import Path
from sully.machinery.formats.names import label_value_problems

Obj = dict[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NO_POD = "a null labelSelector results in matching no pod"
_DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": (
        "deprecated since v1.22; use Taints and Tolerations instead"
    ),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_DEPRECATED_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}


def selection_warnings(spec: Obj, at: Path) -> Iterator[str]:
    """Yield warnings about labels, selectors and volumes of a pod spec."""
    for key in sorted(spec.get("nodeSelector") or {}):
        if key in _DEPRECATED_LABELS:
            yield f"{at.child('nodeSelector').key(key)}: {_DEPRECATED_LABELS[key]}"
    affinity = spec.get("affinity") or {}
    yield from _node_affinity(affinity.get("nodeAffinity") or {}, at)
    for position, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        here = at.child("topologySpreadConstraints").index(position)
        yield from _deprecated(constraint.get("topologyKey", ""), here.child("topologyKey"))
        if "labelSelector" not in constraint:
            yield f"{here.child('labelSelector')}: {_NO_POD}"
    for name in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity(affinity.get(name) or {}, at.child("affinity", name))
    for position, volume in enumerate(spec.get("volumes") or ()):
        for name, text in _DEPRECATED_VOLUMES.items():
            if name in volume:
                yield f"{at.child('volumes').index(position).child(name)}: {text}"


def _node_affinity(affinity: Obj, at: Path) -> Iterator[str]:
    at = at.child("affinity", "nodeAffinity")
    required = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    for position, term in enumerate(required):
        here = at.child(_REQUIRED, "nodeSelectorTerms").index(position)
        yield from _term(term, here, values=False)
    for position, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        here = at.child(_PREFERRED).index(position).child("preference")
        yield from _term(preferred.get("preference") or {}, here, values=True)


def _term(term: Obj, at: Path, *, values: bool) -> Iterator[str]:
    for position, requirement in enumerate(term.get("matchExpressions") or ()):
        here = at.child("matchExpressions").index(position)
        yield from _deprecated(requirement.get("key", ""), here.child("key"))
        for number, value in enumerate(requirement.get("values") or ()) if values else ():
            for problem in label_value_problems(value):
                yield f"{here.child('values').index(number)}: {value} is invalid, {problem}"


def _deprecated(label: str, at: Path) -> Iterator[str]:
    if label in _DEPRECATED_LABELS:
        yield f"{at}: {label} is {_DEPRECATED_LABELS[label]}"


def _pod_affinity(affinity: Obj, at: Path) -> Iterator[str]:
    for position, term in enumerate(affinity.get(_REQUIRED) or ()):
        if "labelSelector" not in term:
            yield f"{at.child(_REQUIRED).index(position).child('labelSelector')}: {_NO_POD}"
    for position, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        if "labelSelector" not in (weighted.get("podAffinityTerm") or {}):
            here = at.child(_PREFERRED).index(position).child("podAffinityTerm", "labelSelector")
            yield f"{here}: {_NO_POD}"
