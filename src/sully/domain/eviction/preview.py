"""What a rule with effect None would do if it evicted: who would leave, whose, and when.

Kubernetes says this once, in the text of evictionstatus.py, and only as numbers. Here it is a
condition of our own that follows the world.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sully.domain.eviction.status import Report, plural

SHOWN = 20
"""How many namespaces and owners are named; the longest names then stay far below the limit."""


@dataclass(frozen=True, slots=True, order=True)
class Leaver:
    """A pod that would leave."""

    namespace: str
    name: str
    owner: str
    """Kind and name of who manages it, or of itself."""
    after: int = 0
    """How many seconds its tolerations keep it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a rule would do."""

    published: int = 0
    allocated: int = 0
    leavers: Collection[Leaver] = ()


def preview(would: Preview) -> Report:
    """Say what a rule would do, in a form that programs can rely on.

    Four sentences: pods, devices, namespaces, owners. The last two are there only if a pod would
    leave, with the largest numbers first.
    """
    leavers = would.leavers
    devices = f"{plural(would.published, 'device')} published, {would.allocated} allocated."
    if not leavers:
        return Report("False", "NobodyWouldLeave", f"0 pods would be evicted. {devices}")
    namespaces = Counter(each.namespace for each in leavers)
    owners = Counter(f"{each.namespace}/{each.owner}" for each in leavers)
    text = (
        f"{plural(len(leavers), 'pod')} would be evicted: {_when(leavers)}. {devices}"
        f" By namespace: {_listed(namespaces)}. By owner: {_listed(owners)}."
    )
    return Report("True", "PodsWouldLeave", text)


def _when(leavers: Iterable[Leaver]) -> str:
    later = [each.after for each in leavers if each.after > 0]
    at_once = sum(each.after <= 0 for each in leavers)
    if not later:
        return f"{at_once} at once"
    first, last = min(later), max(later)
    span = f"{first}s" if first == last else f"{first}s to {last}s"
    return f"{at_once} at once, {len(later)} after {span}"


def _listed(numbers: Counter[str]) -> str:
    """Write numbers by name, the largest first, and how many names were left out."""
    ranked = sorted(numbers.items(), key=lambda each: (-each[1], each[0]))
    texts = [f"{name} {number}" for name, number in ranked[:SHOWN]]
    if len(ranked) > SHOWN:
        texts.append(f"and {len(ranked) - SHOWN} more")
    return ", ".join(texts)
