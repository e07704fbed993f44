"""What the replicas have to do: pods with claims of several shapes on hollow nodes, and rules.

Nodes take turns in having devices of three models. One rule sends the pods on all `a100` away, at a
pace; rules for one pool each do so with `h100`, pool by pool; nobody has to leave an `l4`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kills.fleet import Obj
from sully.client.transport import Kind
from sully.domain.simulated import fleet

ROOM = "work"
DRIVER = fleet.DRIVER
PER_NODE = 8
LEAVING, PIECEMEAL, STAYING = "a100", "h100", "l4"
KEY = "example.com/broken"
BIG_RULE = "all-a100"
PATIENCE_SECONDS = 3

CONFIG_MAPS: Kind[Obj] = Kind("", "v1", "configmaps", "ConfigMap", dict)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a pod wants."""

    models: tuple[str, ...]
    count: int = 1
    tolerates: int | None = None
    """For how many seconds it may stay on a broken device; -1: for ever."""
    shared: bool = False
    """Whether two pods use one claim."""


SHAPES = {
    "one": Shape((LEAVING,)),
    "pair": Shape((LEAVING,), count=2),
    "shared": Shape((LEAVING,), shared=True),
    "patient": Shape((LEAVING,), tolerates=PATIENCE_SECONDS),
    "steadfast": Shape((LEAVING,), tolerates=-1),
    "any": Shape((PIECEMEAL, STAYING)),
    "spared": Shape((STAYING,)),
}
EARLY = ("one", "one", "one", "pair", "shared", "shared", "patient", "steadfast")
"""Shapes that must have their devices before the big rule comes, in turns."""
LATE = ("any", "spared", "steadfast", "any")
"""Shapes that find a device at any time, in turns."""
EARLY_PART = 0.7


@dataclass(frozen=True, slots=True)
class Wanted:
    """A pod that is to be made."""

    number: int
    shape: str

    @property
    def name(self) -> str:
        """Return the pod's name, which tells its shape."""
        return f"{self.shape}-{self.number:05}"

    @property
    def claim(self) -> str:
        """Return the name of the claim it shares, if it does."""
        return f"shared-{self.number // 2:05}" if SHAPES[self.shape].shared else ""


def shape_of(pod: str) -> Shape:
    """Return the shape of a pod by its name."""
    return SHAPES[pod.partition("-")[0]]


def early(pods: int) -> list[Wanted]:
    """Return the pods that come first."""
    return [Wanted(each, EARLY[each % len(EARLY)]) for each in range(round(pods * EARLY_PART))]


def late(pods: int) -> list[Wanted]:
    """Return the pods that come while others leave."""
    return [Wanted(each, LATE[each % len(LATE)]) for each in range(round(pods * EARLY_PART), pods)]


def nodes_for(pods: int) -> int:
    """Return how many nodes there must be: a third of them for each model."""
    devices = sum(SHAPES[each.shape].count for each in (*early(pods), *late(pods)))
    # Somewhat more than needed: two devices for one pod must be on one node.
    return 3 * (-(-devices // PER_NODE) + 1)


def _claim_spec(name: str) -> Obj:
    shape = SHAPES[name]
    models = ", ".join(f"'{each}'" for each in shape.models)
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
            "metadata": {"namespace": ROOM, "name": name},
            "spec": {"spec": _claim_spec(name)},
        }
        for name, shape in SHAPES.items()
        if not shape.shared
    ]


def claim(name: str) -> Obj:
    """Return a claim that two pods share."""
    return {"metadata": {"namespace": ROOM, "name": name}, "spec": _claim_spec("shared")}


def pod(wanted: Wanted) -> Obj:
    """Return a pod."""
    container = {"name": "c", "image": "i:1", "resources": {"claims": [{"name": "gpu"}]}}
    used: Obj = {"name": "gpu", "resourceClaimTemplateName": wanted.shape}
    if wanted.claim:
        used = {"name": "gpu", "resourceClaimName": wanted.claim}
    return {
        "metadata": {"namespace": ROOM, "name": wanted.name},
        "spec": {"containers": [container], "resourceClaims": [used]},
    }


def big_rule(per_second: int) -> Obj:
    """Return the rule that sends most pods away, at a pace."""
    expression = f"device.attributes['{DRIVER}'].model == '{LEAVING}'"
    selector = {"driver": DRIVER, "selectors": [{"cel": {"expression": expression}}]}
    taint = {"key": KEY, "effect": "NoExecute", "evictionsPerSecond": per_second}
    return {
        "metadata": {"name": BIG_RULE},
        "spec": {"deviceSelector": selector, "taint": taint},
    }


def pool_rule(pool: str) -> Obj:
    """Return the rule for one pool; it is called as the pool is."""
    selector = {"driver": DRIVER, "pool": pool}
    return {
        "metadata": {"name": pool},
        "spec": {"deviceSelector": selector, "taint": {"key": KEY, "effect": "NoExecute"}},
    }


def model_of(pool: str) -> str:
    """Return the model of the devices of a pool, which is called as its node is."""
    number = fleet.number_of(pool)
    return "" if number is None else fleet.model_of(number).name


def pools(nodes: int, model: str) -> list[str]:
    """Return the pools of a model."""
    return [name for each in range(nodes) if model_of(name := fleet.name_of(each)) == model]
