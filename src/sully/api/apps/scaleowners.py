"""Who owns the number of copies: the managedFields of a workload, seen from its Scale and back.

A Scale has no managedFields of its own. An apply to a Scale conflicts with the managers of
`replicas` in the workload, and the result is written back to the workload's managedFields.
"""

from sully.machinery.patch.entries import Entry, Holding, Owner, decode, encode
from sully.machinery.patch.fieldset import FieldSet, difference, intersection

_REPLICAS = FieldSet.of(("spec", "replicas")).tree
SCALE = "autoscaling/v1"


def owners_of_scale(entries: list[Entry]) -> list[Entry]:
    """Return the managedFields of a Scale: the managers of `replicas` in its workload."""
    owners = {
        _in(owner, SCALE): Holding(_REPLICAS, SCALE, holding.time)
        for owner, holding in decode(entries, trusted=True).items()
        if _has_replicas(holding)
    }
    return encode(owners)


def owners_of_workload(entries: list[Entry], scaled: list[Entry], version: str) -> list[Entry]:
    """Return the managedFields of a workload after its Scale was applied."""
    remaining = {_who(owner): holding for owner, holding in decode(scaled, trusted=True).items()}
    managed = decode(entries, trusted=True)
    for owner, holding in list(managed.items()):
        if not _has_replicas(holding) or remaining.pop(_who(owner), None) is not None:
            continue
        # Another manager owns it now.
        rest = difference(holding.fields, _REPLICAS)
        if rest:
            managed[owner] = holding._replace(fields=rest)
        else:
            del managed[owner]
    for (manager, operation, subresource), holding in remaining.items():
        owner = _in(Owner(manager, operation, SCALE, subresource), version)
        managed[owner] = Holding(_REPLICAS, version, holding.time)
    return encode(managed, entries)


def _has_replicas(holding: Holding) -> bool:
    return bool(intersection(holding.fields, _REPLICAS))


def _in(owner: Owner, version: str) -> Owner:
    return owner if owner.operation == "Apply" else owner._replace(api_version=version)


def _who(owner: Owner) -> tuple[str, ...]:
    return owner.manager, owner.operation, owner.subresource
