"""Where the volumes of a pod allow it to run.

A volume that is bound may be usable on some nodes only. A claim that waits for its first consumer
is bound or provisioned where the pod is scheduled; one that does not keeps the pod Pending until it
is bound. Limits on the number of volumes per node and the capacity of storage are not evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import Any, Final, Protocol

import msgspec

from sully.domain.allocation.pools import nodes
from sully.domain.scheduling.objects import Pod, Volume
from sully.domain.scheduling.pod_matching import selector_from
from sully.domain.scheduling.resources import nanos
from sully.domain.scheduling.volumes.objects import (
    NO_PROVISIONER,
    ONE_POD,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    StorageClass,
)
from sully.machinery.meta import ObjectMeta

_TOPOLOGY_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels of volumes, and of nodes."""


class VolumeLookup(Protocol):
    """The volumes of a cluster."""

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Return a claim, or None."""

    def volume(self, name: str) -> PersistentVolume | None:
        """Return a volume, or None."""

    def storage_class(self, name: str) -> StorageClass | None:
        """Return a class, or None."""

    def default_class(self) -> str:
        """Return the name of the default class; empty if there is none."""

    def volumes(self) -> Iterable[PersistentVolume]:
        """Return all volumes."""


class VolumeState(Enum):
    """Why the volumes of a pod prevent scheduling on all nodes."""

    CLAIM_NOT_FOUND = auto()
    NOT_CREATED = auto()
    """The claim of an ephemeral volume is not created yet."""
    LOST = auto()
    DELETING = auto()
    NOT_OWNED = auto()
    """The claim of an ephemeral volume belongs to something else."""
    UNBOUND = auto()
    VOLUME_NOT_FOUND = auto()


class VolumeProblem(msgspec.Struct, frozen=True):
    """A volume that prevents scheduling on all nodes."""

    state: VolumeState
    name: str = ""
    """Of the claim or the volume."""
    other: str = ""
    """The pod of a claim that is not owned, or the volume of a claim that is lost."""


class Provisioning(msgspec.Struct, frozen=True):
    """A volume that has to be provisioned; whether and where that succeeds is not known."""

    claim: str
    provisioner: str


class PodVolumes(msgspec.Struct, frozen=True):
    """The volumes of a pod that decide where it runs."""

    bound: tuple[PersistentVolume, ...] = ()
    unbound: tuple[PersistentVolumeClaim, ...] = ()
    """Claims that wait for their first consumer."""
    one_pod: frozenset[str] = frozenset()
    """Claims that only one pod may use."""
    disks: tuple[Volume, ...] = ()
    provisioning: tuple[Provisioning, ...] = ()


def has_placed_volumes(pod: Pod) -> bool:
    """Report whether a pod has volumes that are not usable on any node."""
    # Nearly every pod has a volume, and of a kind that can be mounted anywhere.
    return any(volume.has_claim or volume.is_disk for volume in pod.spec.volumes)


def claim_name(pod: Pod, volume: Volume) -> str:
    """Return the name of the claim behind a volume of a pod; empty if there is none."""
    if (reference := volume.persistent_volume_claim) is not None:
        return str(reference.get("claimName") or "")
    if volume.ephemeral is not None:
        return f"{pod.metadata.name}-{volume.name}"
    return ""


def pod_volumes(
    pod: Pod, lookup: VolumeLookup, *, expects_ephemeral: bool = False
) -> PodVolumes | VolumeProblem:
    """Return the volumes of a pod, or why no node can run it.

    With `expects_ephemeral` the claim of an ephemeral volume need not exist yet.
    """
    claims = _claims(pod, lookup, expects_ephemeral=expects_ephemeral)
    if isinstance(claims, VolumeProblem):
        return claims
    bound: list[PersistentVolume] = []
    unbound: list[PersistentVolumeClaim] = []
    provisioning: list[Provisioning] = []
    for claim in claims:
        if claim.is_bound:
            volume = lookup.volume(claim.spec.volume_name)
            if volume is None:
                return VolumeProblem(VolumeState.VOLUME_NOT_FOUND, claim.spec.volume_name)
            bound.append(volume)
            continue
        class_ = lookup.storage_class(claim.storage_class) if claim.storage_class else None
        if class_ is not None and class_.waits_for_consumer and not claim.spec.volume_name:
            unbound.append(claim)
        elif not claim.metadata.uid:
            # It is not created yet, and will be bound before the pod is scheduled.
            provisioner = class_.provisioner if class_ is not None else ""
            provisioning.append(Provisioning(claim.metadata.name, provisioner))
        else:
            return VolumeProblem(VolumeState.UNBOUND, claim.metadata.name)
    return PodVolumes(
        tuple(bound),
        tuple(unbound),
        frozenset(claim.metadata.name for claim in claims if ONE_POD in claim.spec.access_modes),
        tuple(volume for volume in pod.spec.volumes if volume.is_disk),
        (*provisioning, *_provisioned(unbound, lookup)),
    )


def _claims(
    pod: Pod, lookup: VolumeLookup, *, expects_ephemeral: bool
) -> list[PersistentVolumeClaim] | VolumeProblem:
    """Return the claims of a pod, or why one of them cannot be used."""
    claims: list[PersistentVolumeClaim] = []
    missing = None
    for volume in pod.spec.volumes:
        if not (name := claim_name(pod, volume)):
            continue
        ephemeral = volume.persistent_volume_claim is None
        claim = lookup.claim(pod.metadata.namespace, name)
        if claim is None and ephemeral and expects_ephemeral:
            claims.append(_template(name, volume, lookup))
        elif claim is None and ephemeral:
            missing = missing or VolumeProblem(VolumeState.NOT_CREATED, name)
        elif claim is None:
            # Kubernetes looks at these first.
            return VolumeProblem(VolumeState.CLAIM_NOT_FOUND, name)
        else:
            missing = missing or _problem(pod, claim, ephemeral=ephemeral)
            claims.append(claim)
    return claims if missing is None else missing


def _problem(pod: Pod, claim: PersistentVolumeClaim, *, ephemeral: bool) -> VolumeProblem | None:
    name = claim.metadata.name
    if claim.status.phase == "Lost":
        return VolumeProblem(VolumeState.LOST, name, claim.spec.volume_name)
    if claim.metadata.deletion_timestamp is not None:
        return VolumeProblem(VolumeState.DELETING, name)
    if ephemeral and not claim.metadata.is_controlled_by(pod.metadata.uid):
        return VolumeProblem(VolumeState.NOT_OWNED, f"{pod.metadata.namespace}/{name}", pod.label)
    return None


def _template(name: str, volume: Volume, lookup: VolumeLookup) -> PersistentVolumeClaim:
    """Return the claim that is created for an ephemeral volume."""
    template = (volume.ephemeral or {}).get("volumeClaimTemplate") or {}
    spec = msgspec.convert(template.get("spec") or {}, PersistentVolumeClaimSpec)
    if spec.storage_class_name is None:
        spec = msgspec.structs.replace(spec, storage_class_name=lookup.default_class())
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name), spec=spec)


def _provisioned(
    claims: Iterable[PersistentVolumeClaim], lookup: VolumeLookup
) -> Iterator[Provisioning]:
    for claim in claims:
        class_ = lookup.storage_class(claim.storage_class)
        if class_ is not None and class_.provisioner not in ("", NO_PROVISIONER):
            yield Provisioning(claim.metadata.name, class_.provisioner)


# -- what a node can use --------------------------------------------------------------------------


def is_usable(volume: PersistentVolume, node: nodes.AllocatorNode) -> bool:
    """Report whether a node can use a volume."""
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    return required is None or nodes.selects_node(required, node)


def is_in_zone(volume: PersistentVolume, labels: Mapping[str, str]) -> bool:
    """Report whether the zone and region of a volume, if it has labels for them, are a node's."""
    if _TOPOLOGY_LABELS.keys().isdisjoint(labels):
        return True
    for key, current in _TOPOLOGY_LABELS.items():
        values = volume.metadata.labels.get(key)
        if values is None:
            continue
        zones = [zone.strip() for zone in values.split("__")]
        # Kubernetes ignores a label with an empty zone.
        if all(zones) and labels.get(key, labels.get(current)) not in zones:
            return False
    return True


def can_bind(
    claims: Collection[PersistentVolumeClaim], lookup: VolumeLookup, node: nodes.AllocatorNode
) -> bool:
    """Report whether volumes for claims exist that a node can use, or may be provisioned there."""
    taken: set[str] = set()
    for claim in sorted(claims, key=_size):
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        if selected is not None and selected != node.name:
            return False
        volume = _match(claim, lookup, node, taken) if selected is None else None
        if volume is not None:
            taken.add(volume.metadata.name)
        elif not _may_be_provisioned(claim, lookup, node):
            return False
    return True


def _size(claim: PersistentVolumeClaim) -> int:
    return nanos(claim.spec.resources.requests.get("storage", "0"))


def _match(
    claim: PersistentVolumeClaim,
    lookup: VolumeLookup,
    node: nodes.AllocatorNode,
    taken: Collection[str],
) -> PersistentVolume | None:
    """Return the smallest volume that can be bound to a claim."""
    best: tuple[int, PersistentVolume] | None = None
    for volume in lookup.volumes():
        spec, size = volume.spec, nanos(volume.spec.capacity.get("storage", "0"))
        own = _is_for(volume, claim)
        if (
            volume.metadata.name in taken
            or (spec.claim_ref is not None and not own)
            or size < _size(claim)
            or (spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem")
            or volume.metadata.deletion_timestamp is not None
        ):
            continue
        if own:
            return volume if is_usable(volume, node) else None
        if _offers(volume, claim) and is_usable(volume, node) and (best is None or size < best[0]):
            best = size, volume
    return best[1] if best is not None else None


def _is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    reference, metadata = volume.spec.claim_ref, claim.metadata
    return (
        reference is not None
        and (reference.namespace, reference.name) == (metadata.namespace, metadata.name)
        and reference.uid in ("", metadata.uid)
    )


def _offers(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    selector = claim.spec.selector
    return (
        volume.status.phase == "Available"
        and (selector is None or selector_from(selector).matches(volume.metadata.labels))
        and volume.storage_class == claim.storage_class
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def _may_be_provisioned(
    claim: PersistentVolumeClaim, lookup: VolumeLookup, node: nodes.AllocatorNode
) -> bool:
    class_ = lookup.storage_class(claim.storage_class)
    if class_ is None or class_.provisioner in ("", NO_PROVISIONER):
        return False
    topologies = class_.allowed_topologies
    return not topologies or any(
        term.match_label_expressions
        and all(
            node.labels.get(requirement.key) in requirement.values
            for requirement in term.match_label_expressions
        )
        for term in topologies
    )


# -- disks ----------------------------------------------------------------------------------------


def disks_conflict(volume: Volume, other: Volume) -> bool:
    """Report whether two volumes are the same disk, and cannot both be mounted on one node."""
    for kind, is_same in _SAME_DISK.items():
        one, two = getattr(volume, kind), getattr(other, kind)
        if one is None or two is None or not is_same(one, two):
            continue
        read_only = one.get("readOnly") and two.get("readOnly")
        if kind == "aws_elastic_block_store" or not read_only:
            return True
    return False


def _same_image(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    return (
        not set(one.get("monitors") or ()).isdisjoint(two.get("monitors") or ())
        and one.get("pool", "rbd") == two.get("pool", "rbd")
        and one.get("image") == two.get("image")
    )


def _same(field: str) -> Callable[[Mapping[str, Any], Mapping[str, Any]], bool]:
    return lambda one, two: one.get(field) == two.get(field)


_SAME_DISK: Final[Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], bool]]] = {
    "gce_persistent_disk": _same("pdName"),
    "aws_elastic_block_store": _same("volumeID"),
    "iscsi": _same("iqn"),
    "rbd": _same_image,
}
