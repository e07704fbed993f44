"""A plan on the screen: a summary, tables, and who would find no place, and why."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING, TextIO

from sully.cli.client.tables import Cell, Column, Table, broken, look_of
from sully.cli.client.words import number, span

if TYPE_CHECKING:
    from sully.domain.planning.grouping import Group
    from sully.domain.planning.report import (
        ClassTold,
        Departure,
        DeviceTold,
        Landing,
        Plan,
    )
    from sully.domain.scheduling.diagnosis import Taint

_DONE = re.compile(r" (created|changed|unchanged|deleted)$")
MOST_DEVICES = 10
"""Rows that the short form has for devices, and for reasons why pods find no place."""
MOST_NAMES = 3
"""Names that the short form has where many things have the same to tell."""


def show_plan(plan: "Plan", *, wide: bool = False, stream: TextIO | None = None) -> int:
    """Print a plan for people; return how many lines that took."""
    out = stream or sys.stdout
    screen = _Screen(out, wide=wide)
    screen.changes(plan)
    screen.lines(["", *summary(plan)])
    screen.devices(plan)
    screen.pods(plan)
    screen.others(plan)
    screen.fleet(plan)
    screen.classes(plan.classes)
    screen.homeless(plan)
    screen.lines(f"note: {each}" for each in plan.notes)
    out.flush()
    return screen.printed


def summary(plan: "Plan") -> Iterator[str]:
    """Say the most important in a few lines."""
    if plan.about == "clusters":
        yield f"{number(len(plan.placements), 'placement')} would come out otherwise."
        if plan.homeless:
            yield f"{plan.homeless} of them would lack clusters."
        return
    devices, claims = number(len(plan.devices), "device"), number(len(plan.claims), "claim")
    yield f"{devices} of {plan.devices_known} would change, held by {claims}."
    left = plan.caused
    surely = ", as far as is known." if plan.notes else "."
    if not left:
        yield f"Nobody would have to leave{surely}"
        return
    at_once = sum(each.after < 1 for each in left)
    last = max(each.after for each in left)
    when = "at once" if at_once == len(left) else f"{at_once} at once, the last after {_when(last)}"
    yield f"{number(len(left), 'pod')} would have to leave: {when}."
    yield f"{_places(len(left), plan.homeless)}{surely}"


def _places(pods: int, homeless: int) -> str:
    if pods == 1:
        return f"It would find {'no' if homeless else 'another'} place"
    if homeless == pods:
        return "None of them would find another place"
    if homeless:
        return f"{homeless} of them would find no place"
    return "All of them would find another place"


def _would(done: re.Match[str]) -> str:
    return " would stay as it is" if done[1] == "unchanged" else f" would be {done[1]}"


class _Screen:
    def __init__(self, out: TextIO, *, wide: bool) -> None:
        self._out = out
        self._wide = wide
        self._look = look_of(out)
        self.printed = 0
        """Lines so far: what was said first may have left the screen."""

    def lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            text, width = line.lstrip(), self._look.width
            indent = line[: len(line) - len(text)]
            parts = broken(text, width - len(indent)) if width is not None else [text]
            self._print([f"{indent}{part}".rstrip() for part in parts])

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]]) -> None:
        self._print(["", *Table(columns, self._look).lines(rows)])

    def _print(self, lines: Sequence[str]) -> None:
        self._out.writelines(f"{line}\n" for line in lines)
        self.printed += len(lines)

    def changes(self, plan: "Plan") -> None:
        shown = plan.changes if self._wide else plan.changes[:MOST_DEVICES]
        self.lines(_DONE.sub(_would, each) for each in shown)
        self._more(len(plan.changes) - len(shown), "change")

    def devices(self, plan: "Plan") -> None:
        shown = plan.devices if self._wide else plan.devices[:MOST_DEVICES]
        if not shown:
            return
        # Most devices have nobody on them: claims give way first, so that those take a line each.
        columns = [
            Column("DEVICE", shrinks=2),
            # Most drivers have a pool for each node and call it so: then it is said already.
            Column("NODE", drops=all(f"/{each.node}/" in each.device for each in shown)),
            Column("CHANGE", shrinks=2),
            Column("CLAIMS", shrinks=1),
        ]
        self.table(columns, [_device(each) for each in shown])
        self._more(len(plan.devices) - len(shown), "device")

    def pods(self, plan: "Plan") -> None:
        from sully.domain.planning.grouping import grouped

        if not plan.caused:
            return
        if self._wide:
            columns = [
                Column("NAMESPACE"),
                Column("POD", shrinks=True),
                Column("OWNER", shrinks=True),
                Column("NODE"),
                Column("LEAVES"),
                Column("THEN", shrinks=True),
            ]
            self.table(columns, [_departure(each) for each in plan.caused])
            return
        columns = [
            Column("NAMESPACE"),
            Column("OWNER", shrinks=True),
            Column("PODS", right=True),
            Column("LEAVE"),
            Column("THEN", shrinks=True),
        ]
        self.table(columns, [_group(each) for each in grouped(plan.caused)])

    def others(self, plan: "Plan") -> None:
        anyway = len(plan.departures) - len(plan.caused)
        told = [f"{each.namespace}/{each.name} would stay: {each.why}" for each in plan.stays]
        told += [
            f"{each.namespace}/{each.name}, which waits now, would get {each.node}"
            + (" and leave again" if each.returns else "")
            for each in plan.arrivals
        ]
        if anyway:
            told.append(f"{number(anyway, 'pod')} would leave without the change as well.")
        if told:
            self.lines(["", *told])

    def fleet(self, plan: "Plan") -> None:
        if plan.moves:
            columns = [
                Column("AFTER"),
                Column("PLACEMENT", shrinks=True),
                Column("LEAVES", shrinks=True),
                Column("JOINS", shrinks=True),
            ]
            rows = [
                [_when(x.after), x.placement, ", ".join(x.leaves), ", ".join(x.joins)]
                for x in plan.moves
            ]
            self.table(columns, rows)
        if plan.placements:
            columns = [
                Column("PLACEMENT", shrinks=True),
                Column("HAS", right=True),
                Column("GETS", right=True),
                Column("LACKS", right=True),
                Column("MESSAGE", shrinks=True),
            ]
            rows = [
                [x.placement, str(len(x.before)), str(len(x.after)), str(x.unmet), x.message]
                for x in plan.placements
            ]
            self.table(columns, rows)

    def classes(self, classes: Sequence["ClassTold"]) -> None:
        if not classes:
            return
        columns = [Column("CLASS", shrinks=True), Column("DEVICES", right=True)]
        columns += [Column(each, right=True) for each in ("TAINTED", "IN USE", "FREE")]
        self.table(columns, [_class(each) for each in classes])

    def homeless(self, plan: "Plan") -> None:
        from sully.domain.planning.report import HOMELESS

        found = [each for each in plan.caused if each.landing.fate in HOMELESS]
        if not found:
            return
        self.lines(["", f"{number(len(found), 'pod')} would find no place:"])
        most = None if self._wide else MOST_NAMES
        alike = _alike(found, most)
        shown = alike if self._wide else alike[:MOST_DEVICES]
        for (why, *requests), names in shown:
            self.lines([f"  {_some(names, most)}: {why}", *requests])
        self._more(len(found) - sum(len(names) for _, names in shown), "pod")

    def _more(self, left: int, thing: str) -> None:
        if left > 0:
            self.lines([f"and {number(left, f'more {thing}')}; -o wide shows all"])


def _device(told: "DeviceTold") -> list[str]:
    # Who sets it stands above the table.
    gains = (each.partition(" ")[0] for each in told.gains)
    loses = (each.partition(" ")[0] for each in told.loses)
    changes = [*(f"+{each}" for each in gains), *(f"-{each}" for each in loses)]
    return [
        told.device,
        told.node or "-",
        ", ".join([*changes, *told.changes]),
        ", ".join(told.claims) or "-",
    ]


def _departure(each: "Departure") -> list[Cell | str]:
    return [
        each.namespace,
        each.name,
        each.owner,
        each.node,
        _when(each.after),
        _fate(each.landing),
    ]


def _when(seconds: float) -> str:
    # Times of taints are whole seconds, so what is a fraction short is meant in full.
    return span(ceil(seconds)) if seconds >= 1 else "at once"


def _fate(landing: "Landing") -> Cell:
    from sully.domain.planning.report import Fate

    match landing.fate:
        case Fate.LANDS:
            return Cell(f"lands on {landing.node}", "green")
        case Fate.PENDING:
            return Cell("no place", "red")
        case Fate.RETURNS:
            return Cell(f"lands on {landing.node}, leaves again", "red")
        case Fate.LOST:
            return Cell("not replaced", "red")


def _group(group: "Group") -> list[Cell | str]:
    first, last = _when(group.first), _when(group.last)
    return [
        group.namespace,
        group.owner,
        str(len(group.departures)),
        first if first == last else f"{first} to {last}",
        _fates(group),
    ]


def _fates(group: "Group") -> Cell:
    from sully.domain.planning.report import Fate

    one = {
        Fate.LANDS: "lands",
        Fate.PENDING: "finds no place",
        Fate.RETURNS: "leaves again",
        Fate.LOST: "not replaced",
    }
    several = one | {
        Fate.LANDS: "land",
        Fate.PENDING: "find no place",
        Fate.RETURNS: "leave again",
    }
    nodes = group.nodes
    where = ""
    if nodes:
        where = f" on {', '.join(nodes[:3])}" + (f" and {len(nodes) - 3} more" if nodes[3:] else "")
    texts = [
        f"{count} {(one if count == 1 else several)[fate]}{where if fate is Fate.LANDS else ''}"
        for fate, count in group.fates.items()
    ]
    return Cell(", ".join(texts), "green" if set(group.fates) == {Fate.LANDS} else "red")


def _class(told: "ClassTold") -> list[str]:
    return [
        told.name,
        _from_to(told.devices_before, told.devices),
        _from_to(told.tainted_before, told.tainted_after),
        _from_to(told.used_before, told.used_after),
        _from_to(told.free_before, told.free_after),
    ]


def _from_to(before: int, after: int) -> str:
    return str(after) if before == after else f"{before} -> {after}"


def _alike(
    departures: "Iterable[Departure]", most: int | None
) -> list[tuple[tuple[str, ...], list[str]]]:
    """Put pods together that find no place for the same reasons: of many, most are alike."""
    found: dict[tuple[str, ...], list[str]] = {}
    for each in departures:
        # That nobody is made to leave for it goes without saying.
        why = each.landing.why.partition(" preemption:")[0]
        reasons = (why, *_spoken(each.landing, most))
        found.setdefault(reasons, []).append(f"{each.namespace}/{each.name}")
    return list(found.items())


def _some(names: Sequence[str], most: int | None) -> str:
    """Write the first of some names, and how many more there are."""
    left = 0 if most is None else len(names) - most
    return ", ".join(names[:most]) + (f" and {left} more" if left > 0 else "")


def _spoken(landing: "Landing", most: int | None) -> Iterator[str]:
    """Say which taints and holders kept how many devices from it."""
    account = landing.account
    for asked in account.requests if account is not None else ():
        parts = [f"{asked.available} available"]
        parts += [
            f"{count} {_words(why)}" for why, count in asked.refused.items() if why != "taint"
        ]
        parts += _tainted(asked.taints, most)
        if asked.more_taints:
            parts.append(number(asked.more_taints, "more taint"))
        yield f"    request {asked.request} wants {asked.wanted}: {', '.join(parts)}"


def _tainted(taints: "Sequence[Taint]", most: int | None) -> Iterator[str]:
    """Say how many devices each taint keeps, and who set it.

    A taint that many rules set, as those for a glob do, is said once. The devices of each are in
    brackets then: two rules may be for the same device, so that there is no sum to tell.
    """
    found: dict[tuple[str, bool], list[Taint]] = {}
    for each in taints:
        found.setdefault((f"{each.key}:{each.effect}", each.lapsed), []).append(each)
    for (taint, lapsed), counts in found.items():
        end = ", no longer tolerated" if lapsed else ""
        if len(counts) == 1:
            yield f"{counts[0].devices} tainted {taint} by {counts[0].origin}{end}"
        else:
            origins = [f"{each.origin} ({each.devices})" for each in counts]
            yield f"tainted {taint} by {_some(origins, most)}{end}"


def _words(name: str) -> str:
    """Write a name such as `inUse` as people do."""
    return "".join(f" {each.lower()}" if each.isupper() else each for each in name)
