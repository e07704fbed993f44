"""The words of `sully taint`: what is marked, which ones, and the taints to set and to remove."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sully.cli.client.calling import CommandError
from sully.cli.parsing import meant

if TYPE_CHECKING:
    from sully.domain.planning.taintgrammar import Unwanted, Wanted

DEVICE, CLUSTER = "device", "cluster"
ALIASES = {
    DEVICE: (DEVICE, "devices", "dev"),
    CLUSTER: (CLUSTER, "clusters", "managedcluster", "managedclusters", "mcl"),
}


@dataclass(frozen=True, slots=True)
class Words:
    """What the words of a command come to."""

    what: str
    names: tuple[str, ...]
    """Patterns of devices, or names of clusters."""
    sets: "tuple[Wanted, ...]" = ()
    lifts: "tuple[Unwanted, ...]" = ()


def read_words(words: Sequence[str], *, remove: bool = False) -> Words:
    """Read `device|cluster NAME… TAINT…`; with `remove` the taints need no dash."""
    from sully.domain.planning.taintgrammar import is_taint

    what, rest = _what(words)
    names = [each for each in rest if not is_taint(each)]
    marks = [each for each in rest if is_taint(each)]
    if remove and names and not marks:
        # `untaint cluster eu-2 maintenance`: the last word is a key.
        marks = [names.pop()]
    if remove:
        marks = [each if each.endswith("-") else f"{each}-" for each in marks]
    if not marks:
        raise CommandError(f"say which taint: {what} … {'KEY' if remove else _TAINT}", code=2)
    return _parsed(what, names, marks)


_TAINT = "KEY[=VALUE]:EFFECT"


def _what(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    first = words[0] if words else ""
    for what, others in ALIASES.items():
        if first.lower() in others:
            return what, words[1:]
    if first.lower() in ("node", "nodes", "no"):
        name = words[1] if len(words) > 1 else "NAME"
        raise CommandError(
            f"a node is tainted by kubectl: kubectl taint node {name} …\n"
            f"  its devices are: {DEVICE} '*/{name}/*'",
            code=2,
        )
    known = [each for others in ALIASES.values() for each in others]
    text = f", not {first!r}{meant(first, known)}" if first else ""
    raise CommandError(f"say what it is about: {' or '.join(ALIASES)}{text}", code=2)


def _parsed(what: str, names: Sequence[str], marks: Sequence[str]) -> Words:
    from sully.domain.planning.taintgrammar import (
        CLUSTER_EFFECTS,
        DEVICE_EFFECTS,
        TaintSyntaxError,
        Unwanted,
        Wanted,
        parse_taint,
    )

    effects = DEVICE_EFFECTS if what == DEVICE else CLUSTER_EFFECTS
    try:
        taints = [parse_taint(each, effects) for each in marks]
    except TaintSyntaxError as error:
        raise CommandError(str(error), code=2) from error
    sets = tuple(each for each in taints if isinstance(each, Wanted))
    lifts = tuple(each for each in taints if isinstance(each, Unwanted))
    _refuse_twice(sets, lifts)
    return Words(what, tuple(names), sets, lifts)


def _refuse_twice(sets: "Sequence[Wanted]", lifts: "Sequence[Unwanted]") -> None:
    """Refuse what contradicts itself, as kubectl does."""
    seen: set[tuple[str, str]] = set()
    for each in sets:
        if (each.key, each.effect) in seen:
            raise CommandError(f"{each.key}:{each.effect} is set twice", code=2)
        seen.add((each.key, each.effect))
        if any(gone.means(each.key, each.effect) for gone in lifts):
            raise CommandError(f"{each} is set and removed at once", code=2)
