"""Ends the first sentence about a pod that no node has devices for: the cause, with its author.

A reader who stops after one sentence knows which rule, claim, class or pool to look at; the numbers
follow (shortages.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sully.domain.explaining.shortages import (
    Askings,
    asking_of,
    constraint_text,
    merged_holders,
    merged_taints,
)
from sully.domain.explaining.sources import Sources
from sully.domain.explaining.wording import joined, listed
from sully.domain.scheduling.diagnosis import Asked, Diagnosis

_MOST: Final = 2


def lead(cause: str, account: Diagnosis, asked: Askings, sources: Sources) -> str:
    """Say in half a sentence what keeps a pod from devices, by the word for the cause."""
    short = account.short
    known = {
        "DevicesTainted": lambda: _taints(short, sources),
        "DevicesInUse": lambda: _holders(short),
        "ConstraintUnmet": lambda: _constraints(short, asked),
        "NoDevices": lambda: f"no driver offers it any device{_classes(short, asked)}",
        "SelectorsExclude": lambda: _selectors(short, asked),
        "SelectorsFail": lambda: f"a selector of {_refused(short, 'selectorError')} fails",
        "CapacityTooSmall": lambda: (
            f"no device has the capacity that {_refused(short, 'capacity')} asks for"
        ),
        "PoolsUnusable": lambda: _pools(account),
    }
    found = known.get(cause)
    return found() if found is not None else _PLAIN.get(cause, _NO_DEVICES)


_NO_DEVICES: Final = "no node has the devices that it asks for"
_PLAIN: Final = {
    "NotTogether": "no node has devices for all of its requests together",
    "CountersUsedUp": "the counters that the devices share are used up",
    "DevicesElsewhere": "the devices that it could use are on nodes that do not take it",
}


def _requests(short: Iterable[Asked]) -> str:
    return f"request {listed(dict.fromkeys(each.request for each in short), _MOST)}"


def _refused(short: Iterable[Asked], reason: str) -> str:
    return _requests(each for each in short if each.refused.get(reason))


def _taints(short: Iterable[Asked], sources: Sources) -> str:
    origins = list(dict.fromkeys(each.origin for each in merged_taints(short)))
    names = [sources.of(each).told() for each in origins]
    keep = "keeps" if len(names) == 1 else "keep"
    return f"{listed(names, _MOST)} {keep} it off devices that it could use"


def _holders(short: Iterable[Asked]) -> str:
    names = list(merged_holders(short))
    if not names:
        return "others use the devices that it could have"
    if len(names) == 1:
        return f"claim {names[0]} has devices that it could use"
    return f"claims {listed(names, _MOST)} have devices that it could use"


def _constraints(short: Iterable[Asked], asked: Askings) -> str:
    known = dict.fromkeys(
        constraint_text(constraint)
        for each in short
        for constraint in asking_of(each, asked).constraints
    )
    which = f"constraint {listed(known, _MOST)}" if known else "the constraints of its claim"
    return f"no node has devices that meet {which} together"


def _classes(short: Iterable[Asked], asked: Askings) -> str:
    known = {asking_of(each, asked).device_class for each in short} - {""}
    return f" of class {joined(sorted(known), 'or')}" if known else ""


def _selectors(short: Iterable[Asked], asked: Askings) -> str:
    own = [each for each in short if each.refused.get("requestSelector")]
    if own:
        return f"no device passes the selectors of {_requests(own)}"
    return f"no device is{_classes(short, asked)}"


def _pools(account: Diagnosis) -> str:
    if account.invalid_pools:
        return f"pool {listed(account.invalid_pools, _MOST)} contradicts itself"
    return f"the driver of pool {listed(account.incomplete_pools, _MOST)} is still writing it"
