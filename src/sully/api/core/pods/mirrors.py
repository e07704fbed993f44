"""Mirror pods: what a node runs by itself, shown in the API.

The annotation decides what a node may read because of a pod (server/authorization), so no client
can change it, and such a pod refers to no object that is not the node's own.
"""

from typing import Any

from sully.api.core.checks import Errors
from sully.api.core.pods.references import references
from sully.machinery.errors import forbidden
from sully.machinery.fields import Path

Obj = dict[str, Any]

MIRROR = "kubernetes.io/config.mirror"
_AT = Path("metadata").child("annotations").key(MIRROR)


def is_mirror(pod: Obj) -> bool:
    """Report whether a pod only shows what a node runs by itself."""
    return MIRROR in (pod["metadata"].get("annotations") or {})


def validate_new_mirror(pod: Obj) -> Errors:
    """Yield what is wrong with the annotation of a pod that is being created."""
    if is_mirror(pod) and not pod["spec"].get("nodeName"):
        value = pod["metadata"]["annotations"][MIRROR]
        yield _AT.invalid(value, "must set spec.nodeName if mirror pod annotation is set")


def validate_same_mirror(pod: Obj, old: Obj) -> Errors:
    """Check that an update, also of the status, does not change the annotation."""
    new = (pod["metadata"].get("annotations") or {}).get(MIRROR)
    before = (old["metadata"].get("annotations") or {}).get(MIRROR)
    if new != before:
        verb = "add" if before is None else "remove or update"
        yield _AT.forbidden(f"may not {verb} mirror pod annotation")


def review_mirror(pod: Obj) -> None:
    """Refuse a mirror pod that uses an account or secrets, for every user."""
    if not is_mirror(pod):
        return
    referenced = list(references(pod))
    why = ""
    if pod["spec"].get("serviceAccountName"):
        why = "a mirror pod may not reference service accounts"
    elif any(reference.resource == "secrets" for reference in referenced):
        why = "a mirror pod may not reference secrets"
    elif any(reference.resource == "serviceaccounts" for reference in referenced):
        why = "a mirror pod may not use ServiceAccountToken volume projections"
    if why:
        raise forbidden("pods", "", pod["metadata"].get("name", ""), why)
