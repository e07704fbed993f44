"""Finds by trying what would make a pod fit: the least of what can be changed, on the nearest node.

A trial runs the scheduler once more on a copy of the world with something changed, so what is found
here works, now. On each of a few nodes everything is tried that may help there, and then as little
of it as is enough. To ask one node costs little; to ask all is done only a few times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from sully.domain.explaining.shortages import merged_holders, merged_taints
from sully.domain.explaining.trials import Help, Largest, Opening, Trial, Tries, Where
from sully.domain.explaining.wording import mark
from sully.domain.scheduling.diagnosis import Asked, Diagnosis, Taint

T = TypeVar("T")
NOTHING: Final = Trial()
_SOME_HOLDERS: Final = 64


def helps(account: Diagnosis | None, tries: Tries) -> tuple[Help, ...]:
    """Return what would make a pod fit: the least of each kind that does, or of all together.

    The kinds are tolerating, waiting for devices, and what nodes have against the pod.
    """
    found = _inside(account, tries) if account is not None else []
    openings = list(tries.openings())
    easy = [each for each in openings if not each.full]
    opened = _best(tries, (_opened(tries, each) for each in easy))
    if opened is None and not found:
        opened = _best(tries, (_opened(tries, each, more=True) for each in openings))
    return (*found, *((opened,) if opened is not None else ()))


def _inside(account: Diagnosis, tries: Tries) -> list[Help]:
    """Return what would help on nodes that take the pod, or would if users of devices left."""

    def tolerating(node: str) -> Trial | None:
        return _needed(tries, node, Trial(tolerate=_taints(tries, node)))

    def waiting(node: str) -> Trial | None:
        return _first(_needed(tries, node, Trial(free=free)) for free in _holders(tries, node))

    taints = tuple(merged_taints(account.requests))
    holders = tuple(merged_holders(account.requests))
    tolerated = tries.node_for(Trial(tolerate=taints)) if taints else ""
    freed = tries.node_for(Trial(free=holders)) if holders else ""
    few = tries.nodes()
    nodes = [each for each in dict.fromkeys((tolerated, freed, *few)) if each]
    # Where all of it at once is no help, less is none. Who uses up counters is nowhere listed.
    counters = any(each.refused.get("counters") for each in account.requests)
    found = [
        _best(tries, map(tolerating, nodes)) if tolerated else None,
        _best(tries, map(waiting, nodes)) if freed or counters else None,
    ]
    if not any(found):
        found.append(_best(tries, (_both(tries, each) for each in nodes)))
    return [each for each in found if each is not None]


def beyond(account: Diagnosis, tries: Tries) -> tuple[str, Diagnosis] | None:
    """Return what else is in the way on a node if all taints were tolerated and devices free."""
    for node in tries.nodes()[:1]:
        free = tuple(tries.holders_near(node))
        taints = _taints(tries, node, NOTHING, free)
        then = tries.account_after(Trial(tolerate=taints, free=free), node)
        if then is not None and then.requests and then.reason != account.reason:
            return node, then
    return None


def _both(tries: Tries, node: str, base: Trial = NOTHING) -> Trial | None:
    """Return what to wait for and what to tolerate on a node, beside something else."""
    return _first(
        _needed(tries, node, replace(base, free=free, tolerate=_taints(tries, node, base, free)))
        for free in _holders(tries, node)
    )


def _first(trials: Iterable[Trial | None]) -> Trial | None:
    return next((each for each in trials if each is not None), None)


def _opened(tries: Tries, opening: Opening, *, more: bool = False) -> Trial | None:
    """Return what it takes to get a pod on a node that does not take it as it is."""
    node, plain = opening.node, Trial(opening=opening)
    if not more:
        return plain if tries.node_for(plain, node) else None
    if opening.full:
        # Who leaves makes room and gives devices back, so there is no need to wait for both.
        plain = replace(plain, leave=tuple(tries.pods_on(node)))
    return _both(tries, node, plain)


def _taints(
    tries: Tries, node: str, base: Trial = NOTHING, free: tuple[str, ...] = ()
) -> tuple[Taint, ...]:
    """Return the taints in the way on a node; of those that one toleration covers, only one."""
    account = tries.account_after(replace(base, free=free), node)
    found = merged_taints(account.requests) if account is not None else ()
    return tuple({mark(each): each for each in reversed(found)}.values())[::-1]


def _holders(tries: Tries, node: str) -> Iterator[tuple[str, ...]]:
    """Yield who has devices near a node, those first that have the most that the pod could use.

    All of them are tried only where some are not enough: a pool may be shared by thousands.
    """
    account = tries.account_after(NOTHING, node)
    held = merged_holders(account.requests if account is not None else ())
    near = sorted(tries.holders_near(node), key=lambda each: (-held.get(each, 0), each))
    yield tuple(near[:_SOME_HOLDERS])
    if len(near) > _SOME_HOLDERS:
        yield tuple(near)


def _best(tries: Tries, trials: Iterable[Trial | None]) -> Help | None:
    """Return the smallest trial, with the node that the pod would really get then."""
    best: Trial | None = None
    for each in trials:
        if each is not None and (best is None or each.size < best.size):
            best = each
        if best is not None and best.size == 1:
            break
    return _told(tries, best) if best is not None else None


def _told(tries: Tries, trial: Trial) -> Help | None:
    """Say where the pod would go, and name all objects that stand behind what is tolerated.

    What helps on a node may open others as well, and one of those may fail the whole attempt.
    """
    node = tries.node_for(trial)
    if not node:
        return None
    bare = replace(trial, tolerate=(), where=None)
    account = tries.account_after(bare, node) if trial.tolerate else None
    there = merged_taints(account.requests) if account is not None else ()
    marks = {mark(each) for each in trial.tolerate}
    named = tuple(each for each in there if mark(each) in marks)
    taints = named or trial.tolerate
    liftable = not any(tries.uncovers(each, node) for each in taints)
    return Help(replace(trial, tolerate=taints), node, liftable)


# -- as little as is enough -----------------------------------------------------------------------


def _needed(tries: Tries, node: str, most: Trial) -> Trial | None:
    """Leave out what the pod gets a node without; None if all of it is not enough."""
    if not tries.node_for(most, node):
        return None
    steps = [
        *(Trial(leave=(each,)) for each in most.leave),
        *(Trial(free=(each,)) for each in most.free),
        *(Trial(tolerate=(each,)) for each in most.tolerate),
    ]

    def made_of(kept: Sequence[Trial]) -> Trial:
        return replace(
            most,
            leave=tuple(one for each in kept for one in each.leave),
            free=tuple(one for each in kept for one in each.free),
            tolerate=tuple(one for each in kept for one in each.tolerate),
        )

    found = made_of(fewest(steps, lambda kept: bool(tries.node_for(made_of(kept), node))))
    return _where_needed(tries, node, found) if found.tolerate else found


def _where_needed(tries: Tries, node: str, found: Trial) -> Trial:
    account = tries.account_after(replace(found, tolerate=()), node)
    requests = account.requests if account is not None else ()
    places: list[Where] = [(each.claim, each.request) for each in requests]

    def enough(kept: Sequence[Where]) -> bool:
        return bool(tries.node_for(replace(found, where=tuple(kept)), node))

    return replace(found, where=tuple(fewest(places, enough)) if enough(places) else None)


def fewest(things: Sequence[T], enough: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return some of things that are enough, none of which can be left out.

    All of them must be enough, and more never harm. What comes first is rather kept. It asks about
    as often as the number of things kept times the logarithm of all.
    """
    kept: list[T] = []
    rest = list(things)
    while rest and not enough(kept):
        low, high = 1, len(rest)
        while low < high:
            middle = (low + high) // 2
            if enough([*rest[:middle], *kept]):
                high = middle
            else:
                low = middle + 1
        kept.insert(0, rest[low - 1])
        rest = rest[: low - 1]
    return kept


# -- nothing helps --------------------------------------------------------------------------------


def too_large(account: Diagnosis, tries: Tries) -> tuple[tuple[Asked, Largest], ...]:
    """Return requests for more devices than any node has, if a pod cannot do without them.

    A request with alternatives is too large only if all of them are.
    """
    known = tries.largest()
    large: list[tuple[Asked, Largest]] = []
    served: set[Where] = set()
    for each in account.requests:
        most = known.get((each.claim, each.request), Largest(0, ""))
        if 0 < most.devices < each.wanted:
            large.append((each, most))
        else:
            served.add(_whole(each))
    return tuple((each, most) for each, most in large if _whole(each) not in served)


def _whole(asked: Asked) -> Where:
    """Return the request that an alternative belongs to."""
    return asked.claim, asked.request.partition("/")[0]
