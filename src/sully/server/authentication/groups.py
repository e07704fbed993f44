"""The names of users and groups that mean something to the server itself."""

from collections.abc import Sequence

from sully.server.requests import User

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


def with_authenticated(name: str, groups: Sequence[str]) -> tuple[str, ...]:
    """Return a user's groups with system:authenticated or system:unauthenticated."""
    if AUTHENTICATED in groups or UNAUTHENTICATED in groups:
        return tuple(groups)
    return (*groups, UNAUTHENTICATED if name == ANONYMOUS.name else AUTHENTICATED)
