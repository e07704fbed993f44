"""The rbac group: roles, and the bindings that give them to people and programs.

Owns: the kinds Role, ClusterRole, RoleBinding and ClusterRoleBinding; what rules and roles mean.
Never: answers whether a user may do something (server/authorization does).
Start at: rules.py (what a rule grants), then roles.py and bindings.py.
"""

from collections.abc import Iterable

from sully.api.rbac.bindings import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS
from sully.api.rbac.names import RBAC
from sully.api.rbac.roles import CLUSTER_ROLES, ROLES
from sully.api.tables import load
from sully.machinery.schema import Tables
from sully.machinery.strategy import ResourceType


def load_tables(tables: Tables) -> None:
    """Load the types of the group."""
    load(tables, __name__, RBAC, "rbac.fields")


def resources() -> Iterable[ResourceType]:
    """Return the resources of the group."""
    return (CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES)
