"""All cluster roles and bindings that are there from the start."""

from sully.api.rbac.aggregation import gathered
from sully.server.authorization.policy import clusters, nodes, people, programs
from sully.server.authorization.policy.writing import Obj


def _complete(roles: tuple[Obj, ...]) -> tuple[Obj, ...]:
    """Give aggregated roles their rules, so that they hold before any controller runs.

    In the order in which they gather from each other: view, edit, admin.
    """
    named = {role["metadata"]["name"]: role for role in roles}
    for name in ("view", "edit", "admin"):
        named[name] = named[name] | {"rules": gathered(named[name], named.values())}
    return tuple(named.values())


_SUBJECTS = (people, nodes, clusters, programs)
CLUSTER_ROLES: tuple[Obj, ...] = _complete(tuple(role for each in _SUBJECTS for role in each.ROLES))
CLUSTER_ROLE_BINDINGS: tuple[Obj, ...] = tuple(
    binding for each in _SUBJECTS for binding in each.BINDINGS
)
