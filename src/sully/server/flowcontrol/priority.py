"""Which priority level a request belongs to, and to which flow.

The levels and the order of the rules are those of Kubernetes' API Priority and Fairness, as its
default FlowSchemas have them, so that nodes and controllers keep their seats whatever users do.
limits.py decides how many seats a level has.
"""

from collections.abc import Callable
from typing import NamedTuple

from sully.server.authentication.groups import AUTHENTICATED, MASTERS
from sully.server.authentication.service_accounts import account_groups, split_account
from sully.server.authorization.attributes import Attributes
from sully.server.requests import User

EXEMPT = "exempt"
LEADER_ELECTION = "leader-election"
NODE_HIGH = "node-high"
SYSTEM = "system"
WORKLOAD_HIGH = "workload-high"
WORKLOAD_LOW = "workload-low"
GLOBAL_DEFAULT = "global-default"
CATCH_ALL = "catch-all"

NODES = "system:nodes"
_ACCOUNTS, _SYSTEM_ACCOUNTS = account_groups("kube-system")
_COMPONENTS = ("system:kube-controller-manager", "system:kube-scheduler")


class Flow(NamedTuple):
    """Requests that are counted together."""

    schema: str
    level: str
    distinguisher: str
    """The flow distinguisher: a user, or the namespace of service accounts."""


class _FlowSchema(NamedTuple):
    name: str
    level: str
    matches: Callable[[User, Attributes], bool]


def _of_system(user: User) -> bool:
    return user.name in _COMPONENTS or _SYSTEM_ACCOUNTS in user.groups


def _on_leases(attributes: Attributes) -> bool:
    return attributes.group == "coordination.k8s.io" and attributes.resource == "leases"


def _elects_leader(user: User, attributes: Attributes) -> bool:
    verb = attributes.verb in ("get", "create", "update")
    return _on_leases(attributes) and verb and _of_system(user)


def _reports_node(user: User, attributes: Attributes) -> bool:
    own = (attributes.group == "" and attributes.resource == "nodes") or _on_leases(attributes)
    return own and NODES in user.groups


# The first that matches decides.
_SCHEMAS = (
    _FlowSchema("exempt", EXEMPT, lambda user, _: MASTERS in user.groups),
    _FlowSchema("system-leader-election", LEADER_ELECTION, _elects_leader),
    _FlowSchema("system-node-high", NODE_HIGH, _reports_node),
    _FlowSchema("system-nodes", SYSTEM, lambda user, _: NODES in user.groups),
    _FlowSchema("kube-system-service-accounts", WORKLOAD_HIGH, lambda user, _: _of_system(user)),
    _FlowSchema("service-accounts", WORKLOAD_LOW, lambda user, _: _ACCOUNTS in user.groups),
    _FlowSchema("global-default", GLOBAL_DEFAULT, lambda user, _: AUTHENTICATED in user.groups),
    _FlowSchema("catch-all", CATCH_ALL, lambda _user, _: True),
)
LEVELS = tuple(dict.fromkeys(schema.level for schema in _SCHEMAS))


def flow_of(user: User, attributes: Attributes) -> Flow:
    """Return the flow of a request; `user` is the authenticated one, not the impersonated.

    A user who may create service accounts in a namespace can create any number of them, so they
    count together.
    """
    for schema in _SCHEMAS:
        if schema.matches(user, attributes):
            break
    distinguisher = user.name
    if schema.level == WORKLOAD_LOW:
        account = split_account(user.name)
        distinguisher = account[0] if account else user.name
    return Flow(schema.name, schema.level, distinguisher)
