"""resource.k8s.io: devices, the claims for them, and their taints.

Owns: the kinds of the group in all versions, with defaults, conversion, validation and strategies.
Never: decides what a taint does (domain), or does I/O.
Start at: types.py, then strategy.py, then validation/taints.py.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sully.machinery.schema import Tables
    from sully.machinery.strategy import ResourceType

VERSIONS = ("v1", "v1beta2", "v1beta1", "v1alpha3")
# Fields Kubernetes does not have, by type: a server that imitates it takes them out of the tables.
SUPERSET: Mapping[str, tuple[str, ...]] = {
    "ResourceSliceSpec": ("taints",),
    "DeviceTaint": ("data", "description", "evictionsPerSecond"),
    "DeviceTaintSelector": ("deviceClassName", "selectors"),
}
SUPERSET_KINDS = ("ResourceSlicePatch",)


def package(version: str) -> str:
    """Return the name of the package that holds a version's types."""
    return f"io.k8s.api.resource.{version}"


def load_tables(tables: "Tables") -> None:
    """Load the types of all versions; only v1beta1 differs in shape."""
    from sully.api.tables import load

    for version in VERSIONS:
        load(tables, __name__, package(version), "resource.fields")
    load(tables, __name__, package("v1beta1"), "v1beta1.fields")


def resources() -> Iterable["ResourceType"]:
    """Return the kinds of the group."""
    # Late imports, here and above: importing a type need not load all the rules about it.
    from sully.api.resource.kinds import resources

    return resources()
