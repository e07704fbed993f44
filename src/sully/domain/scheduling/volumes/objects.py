"""Volumes, claims for them and storage classes, as far as they decide where pods run."""

from __future__ import annotations

from typing import Any, Final

from msgspec import field

from sully.api.resource.types import NodeSelector
from sully.machinery.meta import ObjectMeta, Wire

CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
ONE_POD: Final = "ReadWriteOncePod"


class VolumeResources(Wire, frozen=True, kw_only=True):
    """How much storage a claim requests."""

    requests: dict[str, str] = field(default_factory=dict)


class PersistentVolumeClaimSpec(Wire, frozen=True, kw_only=True):
    """What a claim requests."""

    access_modes: tuple[str, ...] = ()
    selector: dict[str, Any] | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str = ""


class VolumePhase(Wire, frozen=True, kw_only=True):
    """The state of a volume or of a claim."""

    phase: str = ""


class PersistentVolumeClaim(Wire, frozen=True, kw_only=True):
    """A claim for a volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: VolumePhase = VolumePhase()

    @property
    def storage_class(self) -> str:
        """Return the name of its class; empty if it has none."""
        named = self.metadata.annotations.get(CLASS_ANNOTATION)
        return named if named is not None else self.spec.storage_class_name or ""

    @property
    def is_bound(self) -> bool:
        """Report whether it has its volume."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations


class ClaimReference(Wire, frozen=True, kw_only=True):
    """The claim that a volume is for."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(Wire, frozen=True, kw_only=True):
    """The nodes that can use a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Wire, frozen=True, kw_only=True):
    """What a volume offers."""

    capacity: dict[str, str] = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""
    volume_mode: str = ""


class PersistentVolume(Wire, frozen=True, kw_only=True):
    """A volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: VolumePhase = VolumePhase()

    @property
    def storage_class(self) -> str:
        """Return the name of its class; empty if it has none."""
        named = self.metadata.annotations.get(CLASS_ANNOTATION)
        return named if named is not None else self.spec.storage_class_name


class TopologyRequirement(Wire, frozen=True, kw_only=True):
    """Values of a label of nodes."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelector(Wire, frozen=True, kw_only=True):
    """Nodes whose labels meet all requirements."""

    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(Wire, frozen=True, kw_only=True):
    """How volumes are provisioned, and when."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologySelector, ...] = ()

    @property
    def waits_for_consumer(self) -> bool:
        """Report whether a volume is bound when a pod that uses it is scheduled."""
        return self.volume_binding_mode == "WaitForFirstConsumer"

    @property
    def is_default(self) -> bool:
        """Report whether claims that name no class get this one."""
        return self.metadata.annotations.get(DEFAULT_CLASS) == "true"
