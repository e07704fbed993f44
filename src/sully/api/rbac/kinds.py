"""How the kinds of the group are served: all alike. roles.py and bindings.py have what differs."""

from sully.api.rbac.names import GROUP, RBAC
from sully.machinery.strategy import Column, ResourceType, Strategy, Version


def kind_of(
    name: str, strategy: Strategy, columns: tuple[Column, ...], *, namespaced: bool
) -> ResourceType:
    """Return a kind; a PUT creates the object if it does not exist."""
    return ResourceType(
        group=GROUP,
        kind=name,
        plural=f"{name.lower()}s",
        singular=name.lower(),
        namespaced=namespaced,
        versions=(Version("v1", RBAC),),
        strategy=strategy,
        columns=columns,
        create_on_update=True,
        most_values=25_000,  # aggregated roles are long, and cheap
    )
