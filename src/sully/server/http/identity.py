"""Who asks, as the TLS connection says.

A client certificate signed by our CA names the user (common name) and groups (organizations).
"""

from collections.abc import Mapping
from typing import Any

from sully.machinery.errors import Forbidden, Unauthorized
from sully.server.requests import Target, User

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"


def identify(scope: Mapping[str, Any]) -> User | None:
    """Return the user of a connection, None if it has shown no certificate."""
    certificate = scope.get("extensions", {}).get("sully.tls", {}).get("peer")
    if not certificate:
        return None
    name, groups = "", []
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    return User(name, (*groups, AUTHENTICATED)) if name else None


def require(user: User | None) -> User:
    """Refuse who has no identity."""
    if user is None:
        raise Unauthorized("Unauthorized")
    return user


def authorise(user: User, verb: str, target: Target | None, path: str) -> None:
    """Refuse who may not; today the members of system:masters may everything."""
    if MASTERS in user.groups:
        return
    if target is None:
        raise Forbidden(f'forbidden: User "{user.name}" cannot {verb} path "{path}"', details={})
    resource = target.resource
    where = (
        f' in the namespace "{target.namespace}"' if target.namespace else " at the cluster scope"
    )
    plural = f"{resource.plural}/{target.subresource}" if target.subresource else resource.plural
    name = f' "{target.name}"' if target.name else ""
    details = {"name": target.name} if target.name else {}
    details |= {"group": resource.group} if resource.group else {}
    subject = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    raise Forbidden(
        f'{subject}{name} is forbidden: User "{user.name}" cannot {verb} resource "{plural}"'
        f' in API group "{resource.group}"{where}',
        details=details | {"kind": resource.plural},
    )
