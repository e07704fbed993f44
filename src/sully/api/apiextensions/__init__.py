"""apiextensions.k8s.io: CustomResourceDefinitions, and the kinds that they define.

Owns: what a valid definition is, its names and conditions, and the resource it becomes.
Never: serves a kind or deletes its objects; server/customresources does.
Start at: definitions.py, then custom.py.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sully.api.tables import load

if TYPE_CHECKING:
    from sully.machinery.schema import Tables
    from sully.machinery.strategy import ResourceType

GROUP = "apiextensions.k8s.io"
PACKAGE = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"


def load_tables(tables: "Tables") -> None:
    """Load the types of the group."""
    load(tables, __name__, PACKAGE, "apiextensions.fields")


def resources() -> Iterable["ResourceType"]:
    """Return the resources of the group."""
    from sully.api.apiextensions.definitions import DEFINITIONS

    return (DEFINITIONS,)
