"""The workload of the replicas: pods with claims of several shapes on simulated nodes, and rules.

Nodes have devices of three models in turn. One rule evicts the pods on all `a100`, at a rate; rules
for one pool each do so with `h100`, pool by pool; pods on `l4` are not evicted.
"""

from __future__ import annotations

from dataclasses import dataclass

from kills.fleet import Obj
from sully.client.transport import Kind
from sully.domain.simulated import fleet

NAMESPACE = "work"
DRIVER = fleet.DRIVER
PER_NODE = 8
EVICTED, PIECEMEAL, KEPT = "a100", "h100", "l4"
KEY = "example.com/broken"
BIG_RULE = "all-a100"
PATIENCE_SECONDS = 3

CONFIG_MAPS: Kind[Obj] = Kind("", "v1", "configmaps", "ConfigMap", dict)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a pod requests."""

    models: tuple[str, ...]
    count: int = 1
    tolerates: int | None = None
    """For how many seconds it tolerates the taint; -1: indefinitely."""
    shared: bool = False
    """Whether two pods use one claim."""


SHAPES = {
    "one": Shape((EVICTED,)),
    "pair": Shape((EVICTED,), count=2),
    "shared": Shape((EVICTED,), shared=True),
    "patient": Shape((EVICTED,), tolerates=PATIENCE_SECONDS),
    "steadfast": Shape((EVICTED,), tolerates=-1),
    "any": Shape((PIECEMEAL, KEPT)),
    "spared": Shape((KEPT,)),
}
EARLY = ("one", "one", "one", "pair", "shared", "shared", "patient", "steadfast")
"""Shapes that must have their devices before the big rule is created, in turns."""
LATE = ("any", "spared", "steadfast", "any")
"""Shapes that find a device at any time, in turns."""
EARLY_PART = 0.7


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """A pod to create."""

    number: int
    shape: str

    @property
    def name(self) -> str:
        """Return the pod's name, which contains its shape."""
        return f"{self.shape}-{self.number:05}"

    @property
    def claim(self) -> str:
        """Return the name of the claim it shares, if it does."""
        return f"shared-{self.number // 2:05}" if SHAPES[self.shape].shared else ""


def shape_of(pod: str) -> Shape:
    """Return the shape of a pod by its name."""
    return SHAPES[pod.partition("-")[0]]


def early(pods: int) -> list[PlannedPod]:
    """Return the pods that are created first."""
    return [PlannedPod(n, EARLY[n % len(EARLY)]) for n in range(round(pods * EARLY_PART))]


def late(pods: int) -> list[PlannedPod]:
    """Return the pods that are created while others are evicted."""
    return [PlannedPod(n, LATE[n % len(LATE)]) for n in range(round(pods * EARLY_PART), pods)]


def nodes_for(pods: int) -> int:
    """Return how many nodes there must be: a third of them for each model."""
    devices = sum(SHAPES[planned.shape].count for planned in (*early(pods), *late(pods)))
    # Somewhat more than needed: two devices for one pod must be on one node.
    return 3 * (-(-devices // PER_NODE) + 1)


def _claim_spec(name: str) -> Obj:
    shape = SHAPES[name]
    models = ", ".join(f"'{model}'" for model in shape.models)
    expression = f"device.attributes['{DRIVER}'].model in [{models}]"
    exactly: Obj = {
        "deviceClassName": DRIVER,
        "count": shape.count,
        "selectors": [{"cel": {"expression": expression}}],
    }
    if shape.tolerates is not None:
        limit = {"tolerationSeconds": shape.tolerates} if shape.tolerates >= 0 else {}
        toleration = {"key": KEY, "operator": "Exists", "effect": "NoExecute", **limit}
        exactly["tolerations"] = [toleration]
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def templates() -> list[Obj]:
    """Return a claim template for each shape that has claims of its own."""
    return [
        {
            "metadata": {"namespace": NAMESPACE, "name": name},
            "spec": {"spec": _claim_spec(name)},
        }
        for name, shape in SHAPES.items()
        if not shape.shared
    ]


def claim(name: str) -> Obj:
    """Return a claim that two pods share."""
    return {"metadata": {"namespace": NAMESPACE, "name": name}, "spec": _claim_spec("shared")}


def pod(planned: PlannedPod) -> Obj:
    """Return a pod."""
    container = {"name": "c", "image": "i:1", "resources": {"claims": [{"name": "gpu"}]}}
    used: Obj = {"name": "gpu", "resourceClaimTemplateName": planned.shape}
    if planned.claim:
        used = {"name": "gpu", "resourceClaimName": planned.claim}
    return {
        "metadata": {"namespace": NAMESPACE, "name": planned.name},
        "spec": {"containers": [container], "resourceClaims": [used]},
    }


def big_rule(per_second: int) -> Obj:
    """Return the rule that evicts most pods, at a rate."""
    expression = f"device.attributes['{DRIVER}'].model == '{EVICTED}'"
    selector = {"driver": DRIVER, "selectors": [{"cel": {"expression": expression}}]}
    taint = {"key": KEY, "effect": "NoExecute", "evictionsPerSecond": per_second}
    return {
        "metadata": {"name": BIG_RULE},
        "spec": {"deviceSelector": selector, "taint": taint},
    }


def pool_rule(pool: str) -> Obj:
    """Return the rule for one pool; it has the name of the pool."""
    selector = {"driver": DRIVER, "pool": pool}
    return {
        "metadata": {"name": pool},
        "spec": {"deviceSelector": selector, "taint": {"key": KEY, "effect": "NoExecute"}},
    }


def model_of(pool: str) -> str:
    """Return the model of the devices of a pool, which has the name of its node."""
    number = fleet.number_of(pool)
    return "" if number is None else fleet.model_of(number).name


def pools(nodes: int, model: str) -> list[str]:
    """Return the pools of a model."""
    return [name for n in range(nodes) if model_of(name := fleet.name_of(n)) == model]
