"""Who owns the number of copies: the managedFields of a workload, seen from its Scale and back.

A Scale has no record of its own. Appliers of a Scale meet everybody who owns the number of the
workload, and what comes out goes back into the workload's record.
"""

from sully.machinery.patch.entries import Entry, Holding, Owner, decode, encode
from sully.machinery.patch.fieldset import FieldSet, difference, intersection

_REPLICAS = FieldSet.of(("spec", "replicas")).tree
SCALE = "autoscaling/v1"


def owners_of_scale(entries: list[Entry]) -> list[Entry]:
    """Return the record of a workload as that of its Scale: who owns the number."""
    found = {
        _in(owner, SCALE): Holding(_REPLICAS, SCALE, holding.time)
        for owner, holding in decode(entries, trusted=True).items()
        if _has_replicas(holding)
    }
    return encode(found)


def owners_of_workload(entries: list[Entry], scaled: list[Entry], version: str) -> list[Entry]:
    """Return the record of a workload after its Scale was applied; `version` is the workload's."""
    left = {_who(owner): holding for owner, holding in decode(scaled, trusted=True).items()}
    managed = decode(entries, trusted=True)
    for owner, holding in list(managed.items()):
        if not _has_replicas(holding) or left.pop(_who(owner), None) is not None:
            continue
        # Somebody else has it now.
        rest = difference(holding.fields, _REPLICAS)
        if rest:
            managed[owner] = holding._replace(fields=rest)
        else:
            del managed[owner]
    for (manager, operation, subresource), holding in left.items():
        owner = _in(Owner(manager, operation, SCALE, subresource), version)
        managed[owner] = Holding(_REPLICAS, version, holding.time)
    return encode(managed, entries)


def _has_replicas(holding: Holding) -> bool:
    return bool(intersection(holding.fields, _REPLICAS))


def _in(owner: Owner, version: str) -> Owner:
    return owner if owner.operation == "Apply" else owner._replace(api_version=version)


def _who(owner: Owner) -> tuple[str, ...]:
    return owner.manager, owner.operation, owner.subresource
