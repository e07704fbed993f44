"""Who owns the number of copies: the managedFields of a workload, seen from its Scale and back.

A Scale has no managedFields of its own. An apply to a Scale conflicts with the managers of
`replicas` in the workload, and the result is written back to the workload's managedFields.
"""

from sully.machinery.patch.ownership.entries import Entry, Holding, decode, encode
from sully.machinery.patch.ownership.fieldset import FieldSet, Tree, difference, intersection

REPLICAS = ("spec", "replicas")
SCALE = "autoscaling/v1"


def owners_of_scale(entries: list[Entry], path: tuple[str, ...] = REPLICAS) -> list[Entry]:
    """Return the managedFields of a Scale: the managers of the count in its workload."""
    here, scaled = FieldSet.of(path).tree, FieldSet.of(REPLICAS).tree
    owners = {
        owner: Holding(scaled, SCALE, holding.time)
        for owner, holding in decode(entries, trusted=True).items()
        if _has(holding, here)
    }
    return encode(owners)


def owners_of_workload(
    entries: list[Entry], scaled: list[Entry], version: str, path: tuple[str, ...] = REPLICAS
) -> list[Entry]:
    """Return the managedFields of a workload after its Scale was written.

    A manager whose updates own the count gets an entry of its own for it, without a time: the
    Scale knows that manager by another apiVersion. Kubernetes merges both entries at the next
    write of the workload.
    """
    here, count = FieldSet.of(path).tree, FieldSet.of(REPLICAS).tree
    on_scale = decode(scaled, trusted=True)
    managed = decode(entries, trusted=True)
    times = {owner: holding.time for owner, holding in managed.items()}
    for owner, holding in list(managed.items()):
        if not _has(holding, here) or on_scale.pop(owner, None) is not None:
            continue
        # Another manager owns it now.
        rest = difference(holding.fields, here)
        if rest:
            managed[owner] = holding._replace(fields=rest)
        else:
            del managed[owner]
    for owner, holding in on_scale.items():
        if _has(holding, count):
            managed[owner] = Holding(here, version, times.get(owner, ""))
    return encode(managed, entries)


def _has(holding: Holding, fields: Tree) -> bool:
    return bool(intersection(holding.fields, fields))
