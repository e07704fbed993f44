"""Who owns the number of copies: the managedFields of a workload, seen from its Scale and back.

A Scale has no managedFields of its own. An apply to a Scale conflicts with the managers of
`replicas` in the workload, and the result is written back to the workload's managedFields.
"""

from sully.machinery.patch.ownership.entries import Entry, Holding, Owner, decode, encode
from sully.machinery.patch.ownership.fieldset import FieldSet, Tree, difference, intersection

REPLICAS = ("spec", "replicas")
SCALE = "autoscaling/v1"


def owners_of_scale(entries: list[Entry], path: tuple[str, ...] = REPLICAS) -> list[Entry]:
    """Return the managedFields of a Scale: the managers of the count in its workload."""
    here, scaled = FieldSet.of(path).tree, FieldSet.of(REPLICAS).tree
    owners = {
        _in(owner, SCALE): Holding(scaled, SCALE, holding.time)
        for owner, holding in decode(entries, trusted=True).items()
        if _has(holding, here)
    }
    return encode(owners)


def owners_of_workload(
    entries: list[Entry], scaled: list[Entry], version: str, path: tuple[str, ...] = REPLICAS
) -> list[Entry]:
    """Return the managedFields of a workload after its Scale was applied."""
    here = FieldSet.of(path).tree
    remaining = {
        _identity(owner): holding for owner, holding in decode(scaled, trusted=True).items()
    }
    managed = decode(entries, trusted=True)
    for owner, holding in list(managed.items()):
        if not _has(holding, here) or remaining.pop(_identity(owner), None) is not None:
            continue
        # Another manager owns it now.
        rest = difference(holding.fields, here)
        if rest:
            managed[owner] = holding._replace(fields=rest)
        else:
            del managed[owner]
    for (manager, operation, subresource), holding in remaining.items():
        owner = _in(Owner(manager, operation, SCALE, subresource), version)
        managed[owner] = Holding(here, version, holding.time)
    return encode(managed, entries)


def _has(holding: Holding, fields: Tree) -> bool:
    return bool(intersection(holding.fields, fields))


def _in(owner: Owner, version: str) -> Owner:
    return owner if owner.operation == "Apply" else owner._replace(api_version=version)


def _identity(owner: Owner) -> tuple[str, ...]:
    return owner.manager, owner.operation, owner.subresource
