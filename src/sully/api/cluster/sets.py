"""ManagedClusterSet, ManagedClusterSetBinding and their admission.

The permission to bind a set is checked in server/admission/clusters.py.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from sully.api.cluster.columns import AGE, CLUSTER_VERBS, condition_status
from sully.api.cluster.schemas import package
from sully.api.cluster.selectors import selector_problem
from sully.api.cluster.strategy import CustomStatusStrategy, CustomStrategy, denied_badly
from sully.api.cluster.types import GROUP
from sully.api.core.columns import NAME
from sully.machinery.strategy import ResourceType, Version, WriteContext

Obj = dict[str, Any]

BINDING_VALIDATORS = "managedclustersetbindingvalidators"
_VERSIONS = (Version("v1beta2", package("v1beta2"), unconditional_update=False, structural=True),)


class SetStrategy(CustomStrategy, frozen=True):
    """Writes to sets."""

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterable[str]:
        """Warn of a selector that cannot select."""
        return _set_warnings(obj) if ctx.compat.warns_about_placements else ()


def _set_warnings(obj: Obj) -> Iterator[str]:
    selector = (obj["spec"].get("clusterSelector") or {}).get("labelSelector")
    at = "spec.clusterSelector.labelSelector"
    if selector is not None and (problem := selector_problem(selector)):
        yield f"{at}: {problem}: placements that use this set are not scheduled"


class BindingStrategy(CustomStrategy, frozen=True):
    """Writes to bindings."""

    def review(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
        """Require that a binding has the name of its set."""
        if obj["metadata"].get("name", "") != (obj.get("spec") or {}).get("clusterSet", ""):
            raise denied_badly(
                BINDING_VALIDATORS,
                "The ManagedClusterSetBinding must have the same name as the target"
                " ManagedClusterSet",
            )


SETS = ResourceType(
    GROUP,
    "ManagedClusterSet",
    "managedclustersets",
    "managedclusterset",
    namespaced=False,
    versions=_VERSIONS,
    strategy=SetStrategy(version="v1beta2", kind="ManagedClusterSet"),
    status=CustomStatusStrategy(version="v1beta2", kind="ManagedClusterSet"),
    short_names=("mclset", "mclsets"),
    columns=(NAME, condition_status("Empty", "ClusterSetEmpty"), AGE),
    verbs=CLUSTER_VERBS,
)

BINDINGS = ResourceType(
    GROUP,
    "ManagedClusterSetBinding",
    "managedclustersetbindings",
    "managedclustersetbinding",
    namespaced=True,
    versions=_VERSIONS,
    strategy=BindingStrategy(version="v1beta2", kind="ManagedClusterSetBinding"),
    status=CustomStatusStrategy(version="v1beta2", kind="ManagedClusterSetBinding"),
    short_names=("mclsetbinding", "mclsetbindings"),
    columns=(NAME, AGE),
    verbs=CLUSTER_VERBS,
)
