"""What an API server supports for devices and clusters, by its discovery documents.

That is its version, the resources it serves, and the fields of its published schemas.
`client.discovery.capabilities` reads them; duties.py decides what runs there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

DEVICES = "resource.k8s.io"
OURS = "sully.dev"
HUB = "cluster.open-cluster-management.io"
RULES = "devicetaintrules"
PATCHES = "resourceslicepatches"
DEVICE_POLICIES = "devicetaintpolicies"
MAINTENANCES = "devicemaintenances"
OWN_KINDS = {
    PATCHES: "ResourceSlicePatch",
    "evictionrecords": "EvictionRecord",
    "taintrecords": "TaintRecord",
    "clustertaintpolicies": "ClusterTaintPolicy",
    DEVICE_POLICIES: "DeviceTaintPolicy",
    MAINTENANCES: "DeviceMaintenance",
    "devicehealths": "DeviceHealth",
}
"""The kinds that `sully install` installs on a server that is not ours."""

DEVICE_VERSIONS = ("v1", "v1beta2", "v1beta1")
"""The supported versions, the preferred one first; the client converts v1beta1."""
RULE_VERSIONS = ("v1", "v1beta2", "v1alpha3")

FIRST_WITH_TAINTS = 33
FIRST_WITH_TAINTS_ON = 36
"""The first minor version whose feature gate of device taints is on by default."""

Fields = Mapping[str, frozenset[str]]
"""The fields of types, by the name of the type."""


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """The discovery documents of a server."""

    git_version: str
    resources: Mapping[tuple[str, str], tuple[str, ...]]
    """The versions of each resource, by group and plural name; subresources as `pods/status`."""
    schemas: Mapping[str, Fields]
    """What each version of the device API has; a version is missing where it could not be read."""
    evictor_role: bool = False
    """Whether the role of Kubernetes' own eviction controller exists."""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """The capabilities of a server."""

    version: str
    minor: int
    own: bool
    """Whether it is an API server of Sully, where no other controllers run."""
    devices: str
    """The version of the device API that Sully uses with it; empty: none."""
    too_old: tuple[str, ...] = ()
    """Versions of the device API that it has and Sully does not support."""
    device_fields: frozenset[str] = frozenset()
    slice_fields: frozenset[str] = frozenset()
    rules: str = ""
    """The version of taint rules that Sully uses with it; empty: it has none."""
    rule_status: bool = False
    selector_fields: frozenset[str] = frozenset()
    taint_fields: frozenset[str] = frozenset()
    evictor_role: bool = False
    own_kinds: frozenset[str] = frozenset()
    """Plural names of our kinds that it has."""
    hub: frozenset[str] = frozenset()
    """Plural names of the kinds of Open Cluster Management that it has."""

    @property
    def taints(self) -> bool:
        """Report whether devices can have taints, according to the schema."""
        return "taints" in self.device_fields

    @property
    def stores_taints(self) -> bool:
        """Report whether taints are stored: a schema has the field also where a gate is off."""
        sign = self.minor >= FIRST_WITH_TAINTS_ON or bool(self.rules) or self.evictor_role
        return self.taints and (self.own or sign)


def offer(answers: Answers) -> Offer:
    """Return the capabilities of a server by its discovery documents."""
    devices, rules = spoken(answers.resources)
    shown = answers.schemas.get(devices, {})
    of_rules = answers.schemas.get(rules, {})
    status = answers.resources.get((DEVICES, f"{RULES}/status"), ())
    return Offer(
        version=answers.git_version,
        minor=minor_of(answers.git_version),
        own=is_own(answers.git_version),
        devices=devices,
        too_old=() if devices else answers.resources.get((DEVICES, "resourceslices"), ()),
        # In v1beta1 the content of a device is a type of its own.
        device_fields=shown.get("Device", frozenset()) | shown.get("BasicDevice", frozenset()),
        slice_fields=shown.get("ResourceSliceSpec", frozenset()),
        rules=rules,
        rule_status=bool(rules) and rules in status,
        selector_fields=of_rules.get("DeviceTaintSelector", frozenset()),
        taint_fields=of_rules.get("DeviceTaint", frozenset()),
        evictor_role=answers.evictor_role,
        own_kinds=_own_kinds(answers.resources),
        hub=frozenset(plural for group, plural in answers.resources if group == HUB),
    )


def spoken(resources: Mapping[tuple[str, str], tuple[str, ...]]) -> tuple[str, str]:
    """Return the versions of devices and of rules to use; empty if none is supported."""
    return (
        _first(DEVICE_VERSIONS, resources.get((DEVICES, "resourceslices"), ())),
        _first(RULE_VERSIONS, resources.get((DEVICES, RULES), ())),
    )


def is_own(git_version: str) -> bool:
    """Report whether a server is Sully's, by the version that it gives."""
    return "+sully-" in git_version


def _own_kinds(resources: Iterable[tuple[str, str]]) -> frozenset[str]:
    # On our own server patches are in the group of devices, as their design has it.
    return (
        frozenset(
            plural
            for group, plural in resources
            if group == OURS or (group, plural) == (DEVICES, PATCHES)
        )
        & OWN_KINDS.keys()
    )


def minor_of(git_version: str) -> int:
    """Return the minor version of a 1.x server; 0 if it has none."""
    # Not the field `minor`, to which providers add signs of their own.
    match = re.match(r"v1\.(\d+)", git_version)
    return int(match[1]) if match else 0


def _first(supported: Iterable[str], served: Iterable[str]) -> str:
    return next((version for version in supported if version in served), "")
