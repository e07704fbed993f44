"""The storage group: classes, CSI drivers, their capacity and attachments.

Owns: the kinds StorageClass, CSIDriver, CSINode, CSIStorageCapacity and VolumeAttachment.
Never: provisions, binds or attaches a volume; the objects are stored for schedulers and drivers.
Start at: classes.py, then csi.py.
"""

from collections.abc import Iterable

from sully.api.storage.attachments import VOLUME_ATTACHMENTS
from sully.api.storage.capacities import CSI_STORAGE_CAPACITIES
from sully.api.storage.classes import STORAGE, STORAGE_CLASSES
from sully.api.storage.csi import CSI_DRIVERS, CSI_NODES
from sully.api.tables import load
from sully.machinery.schema import Tables
from sully.machinery.strategy import ResourceType


def load_tables(tables: Tables) -> None:
    """Load the types of the group."""
    load(tables, __name__, STORAGE, "storage.fields")


def resources() -> Iterable[ResourceType]:
    """Return the resources of the group."""
    return (
        CSI_DRIVERS,
        CSI_NODES,
        CSI_STORAGE_CAPACITIES,
        STORAGE_CLASSES,
        VOLUME_ATTACHMENTS,
    )
