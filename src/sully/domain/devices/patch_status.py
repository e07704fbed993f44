"""The status of a ResourceSlicePatch: how many devices it changes, and which selectors fail.

The conditions are our own, because KEP-5027 defines none. Which devices a patch selects is decided
in patches.py.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sully.domain.devices.pools import DeviceId
from sully.domain.devices.rules import Choice
from sully.domain.eviction.status import SELECTOR_PROBLEM, Report
from sully.machinery.formats.plurals import number_of

__all__ = ["SELECTOR_PROBLEM", "PatchReport", "report", "report_all", "selector_problem"]


class PatchReport(msgspec.Struct, frozen=True):
    """The conditions of a patch."""

    applied: Report
    selector_problem: Report | None
    """None if the selectors can be evaluated for all devices."""
    failures: frozenset[str]
    """The errors of its own expressions, each once."""


def report(choices: Iterable[tuple[DeviceId, Choice]]) -> PatchReport:
    """Report how many devices a patch selects."""
    selected, failed = 0, 0
    first = ""
    failures: set[str] = set()
    for device, choice in choices:
        selected += choice.selected
        if choice.problem:
            failed += 1
            first = first or f"{device}: {choice.problem}"
            if choice.own:
                failures.add(choice.problem)
    return PatchReport(_applied(selected), selector_problem(failed, first), frozenset(failures))


def report_all(selected: int) -> PatchReport:
    """Report on a patch that selects by names only, which cannot fail."""
    return PatchReport(_applied(selected), None, frozenset())


def _applied(selected: int) -> Report:
    if not selected:
        return Report("False", "NoDevice", "No published device is selected.")
    return Report("True", "Applied", f"Changes {number_of(selected, 'device')}.")


def selector_problem(failed: int, first: str) -> Report | None:
    """Report how many devices criteria could not be evaluated for; rules report it too."""
    if not failed:
        return None
    text = f"{number_of(failed, 'device')} not selected because of errors: {first}"
    return Report("True", "SelectorFailed", text)
