"""CSIDrivers and CSINodes: which drivers there are, and on which nodes."""

from collections.abc import Iterator
from typing import Any

from sully.api.core import generations
from sully.api.core.checks import Errors, driver_name, label_key, not_negative, one_of, same
from sully.api.core.columns import AGE, NAME, UNSET, plain
from sully.api.storage.classes import STORAGE
from sully.machinery.fields import FieldError, Path
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

SPEC = Path("spec")
_DEFAULTS = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
    "preventPodSchedulingIfMissing": False,
}
_LIFECYCLES = ("Persistent", "Ephemeral")
_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_SHORTEST_TOKEN, _LONGEST_TOKEN = 600, 2**32
_SHORTEST_PERIOD = 10
_NODE_ID_MAX = 192


class DriverStrategy(Strategy, frozen=True):
    """Writes to CSI drivers."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in what a driver usually is."""
        spec = obj["spec"]
        for name, value in _DEFAULTS.items():
            spec.setdefault(name, value)
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Count the change."""
        generations.follow(obj, old, bump=generations.spec_changed(obj, old))

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check policies, tokens and modes."""
        spec = obj["spec"]
        yield from one_of(spec["fsGroupPolicy"], _GROUP_POLICIES, SPEC.child("fsGroupPolicy"))
        yield from _tokens(spec.get("tokenRequests") or [], SPEC.child("tokenRequests"))
        for mode in spec["volumeLifecycleModes"]:
            if mode not in _LIFECYCLES:
                yield SPEC.child("volumeLifecycleModes").not_supported(mode, _LIFECYCLES)
        name = "nodeAllocatableUpdatePeriodSeconds"
        if spec.get(name, _SHORTEST_PERIOD) < _SHORTEST_PERIOD:
            text = "must be greater than or equal to 10 seconds"
            yield SPEC.child(name).invalid(spec[name], text)
        name = "serviceAccountTokenInSecrets"
        if name in spec and not spec.get("tokenRequests"):
            text = f"{name} is set but no tokenRequests are specified"
            yield SPEC.child(name).invalid(spec[name], text)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state, and what must stay."""
        yield from self.validate_create(obj, ctx)
        # Kubernetes names the first field so.
        for name, shown in (
            ("attachRequired", "attachedRequired"),
            ("volumeLifecycleModes", "volumeLifecycleModes"),
        ):
            if not same(obj["spec"].get(name), old["spec"].get(name)):
                yield SPEC.child(shown).invalid(obj["spec"].get(name), "field is immutable")


def _tokens(requests: list[Obj], at: Path) -> Errors:
    audiences: set[str] = set()
    for position, request in enumerate(requests):
        here, audience = at.index(position), request.get("audience", "")
        if audience in audiences:
            yield here.child("audience").duplicate(audience)
            continue
        audiences.add(audience)
        seconds, field = request.get("expirationSeconds"), here.child("expirationSeconds")
        if seconds is not None and seconds < _SHORTEST_TOKEN:
            yield field.invalid(seconds, "may not specify a duration less than 10 minutes")
        if seconds is not None and seconds > _LONGEST_TOKEN:
            yield field.invalid(seconds, "may not specify a duration larger than 2^32 seconds")


class NodeStrategy(Strategy, frozen=True):
    """Writes to the drivers of a node."""

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start without a status: storage health is a feature that is not supported."""
        obj["status"] = {}

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status."""
        obj["status"] = old["status"]

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check each driver, and that each is there once."""
        names: set[str] = set()
        for position, driver in enumerate(obj["spec"].get("drivers") or ()):
            at, name = SPEC.child("drivers").index(position), driver.get("name", "")
            yield from driver_name(name, at.child("name"))
            yield from _node_id(driver.get("nodeID", ""), at.child("nodeID"))
            count = (driver.get("allocatable") or {}).get("count", 0)
            yield from not_negative(count, at.child("allocatable", "count"))
            if name in names:
                yield at.child("name").duplicate(name)
            names.add(name)
            yield from _topology_keys(driver.get("topologyKeys") or [], at)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state, and that drivers that stay do not change but in their limit."""
        yield from self.validate_create(obj, ctx)
        before = {driver["name"]: _fixed(driver) for driver in old["spec"].get("drivers") or ()}
        for driver in obj["spec"].get("drivers") or ():
            name = driver.get("name", "")
            if name in before and not same(_fixed(driver), before[name]):
                yield SPEC.child("drivers").invalid(_shown(driver), "field is immutable")


class NodeStatusStrategy(NodeStrategy, frozen=True):
    """Writes to the status endpoint, which is without effect while the feature is off."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec, and drop the health of the storage."""
        obj["spec"], obj["status"] = old["spec"], {}

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Accept the change: nothing is left to check."""
        return iter(())


def _node_id(node: str, at: Path) -> Errors:
    if not node:
        yield at.required()
    if len(node.encode()) > _NODE_ID_MAX:
        yield at.invalid(node, f"must be {_NODE_ID_MAX} characters or less")


def _topology_keys(keys: list[str], at: Path) -> Errors:
    for position, key in enumerate(keys):
        if not key:
            yield at.required()
        if key in keys[:position]:
            yield at.duplicate(key)
        yield from label_key(key, at)


def _fixed(driver: Obj) -> Obj:
    return {name: value for name, value in driver.items() if name != "allocatable"}


def _shown(driver: Obj) -> Obj:
    return {
        "Name": driver["name"],
        "NodeID": driver["nodeID"],
        "TopologyKeys": driver.get("topologyKeys"),
        "Allocatable": None,
    }


def _flag(name: str) -> Any:
    return plain(lambda obj: obj["spec"].get(name, False))


def _audiences(obj: Obj) -> str:
    requests = obj["spec"].get("tokenRequests") or ()
    return ",".join(request.get("audience", "") for request in requests) or UNSET


CSI_DRIVERS = ResourceType(
    group="storage.k8s.io",
    kind="CSIDriver",
    plural="csidrivers",
    singular="csidriver",
    namespaced=False,
    versions=(Version("v1", STORAGE, unconditional_update=False, delete_returns_object=True),),
    strategy=DriverStrategy(),
    columns=(
        NAME,
        Column(
            "AttachRequired",
            _flag("attachRequired"),
            type="boolean",
            description="Whether volumes must be attached.",
        ),
        Column(
            "PodInfoOnMount",
            _flag("podInfoOnMount"),
            type="boolean",
            description="Whether the driver gets information about pods.",
        ),
        Column(
            "StorageCapacity",
            _flag("storageCapacity"),
            type="boolean",
            description="Whether pods are scheduled by capacity.",
        ),
        Column("TokenRequests", plain(_audiences), description="Audiences of tokens."),
        Column(
            "RequiresRepublish",
            _flag("requiresRepublish"),
            type="boolean",
            description="Whether volumes are published again periodically.",
        ),
        Column(
            "Modes",
            plain(lambda obj: ",".join(obj["spec"].get("volumeLifecycleModes") or ())),
            description="Kinds of volumes.",
        ),
        AGE,
    ),
)

CSI_NODES = ResourceType(
    group="storage.k8s.io",
    kind="CSINode",
    plural="csinodes",
    singular="csinode",
    namespaced=False,
    versions=(Version("v1", STORAGE, unconditional_update=False, delete_returns_object=True),),
    strategy=NodeStrategy(reset=(("status",),)),
    status=NodeStatusStrategy(reset=(("metadata",), ("spec",))),
    columns=(
        NAME,
        Column(
            "Drivers",
            plain(lambda obj: len(obj["spec"].get("drivers") or ())),
            type="integer",
            description="Number of drivers on the node.",
        ),
        AGE,
    ),
)
