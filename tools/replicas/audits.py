"""Which replica wrote when, by their audit logs: all machines here share one clock.

A write of a controller that began after another replica had got the lease is a second leader. One
that began before and ended after was on its way, perhaps in a process that was frozen; the logs
does not know when it was done, so it is counted, and versions decide whether it was done at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kills.fleet import Obj
from sully.machinery.serialization.codec import from_json

LEASE = "sully-controllers"
OWNERS = ("system:serviceaccount:kube-system:", "system:kube-")
EVICTOR = "device-taint-eviction"
LEASES_OF_NODES = "kube-node-lease"


@dataclass(frozen=True, slots=True)
class Act:
    """A write that a controller made with success."""

    replica: str
    begun: datetime
    ended: datetime
    user: str
    what: str
    namespace: str
    name: str

    @property
    def renews(self) -> bool:
        """Report whether it took or kept the lease of the controllers."""
        return self.what in ("create leases", "update leases") and self.name == LEASE

    @property
    def works(self) -> bool:
        """Report whether it moved something on; leases of nodes move nothing."""
        return not self.renews and self.namespace != LEASES_OF_NODES


def read(replica: str, folder: Path) -> list[Act]:
    """Read the successful writes of controllers in one replica's logs."""
    acts = []
    for path in folder.glob("audit.log*"):
        for line in path.read_bytes().splitlines():
            try:
                entry = from_json(line)
            except ValueError:
                continue  # the last line of a process that was killed
            if (act := _act(replica, entry)) is not None:
                acts.append(act)
    return sorted(acts, key=lambda act: act.begun)


def _act(replica: str, entry: Obj) -> Act | None:
    user = (entry.get("user") or {}).get("username", "")
    # Controllers in the replica have no address; everyone else comes from somewhere.
    ours = user.startswith(OWNERS) and "sourceIPs" not in entry
    if not ours or entry["responseStatus"]["code"] >= 300:
        return None
    about = entry.get("objectRef") or {}
    parts = (entry["verb"], about.get("resource", ""), about.get("subresource", ""))
    return Act(
        replica,
        datetime.fromisoformat(entry["requestReceivedTimestamp"]),
        datetime.fromisoformat(entry["stageTimestamp"]),
        user.rpartition(":")[2],
        " ".join(part for part in parts if part),
        about.get("namespace", ""),
        about.get("name", ""),
    )


@dataclass(frozen=True, slots=True)
class Term:
    """A time in which one replica had the lease, until another had it."""

    replica: str
    begun: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the logs show about leading."""

    problems: Sequence[str]
    in_flight: int
    """Writes that were on their way when the lease passed on."""


def judge(logs: Mapping[str, Sequence[Act]], led: Sequence[Term]) -> Verdict:
    """Find those who acted while another led, and what was done twice."""
    acts = [act for log in logs.values() for act in log]
    problems, in_flight = [], 0
    for act in acts:
        if act.renews:
            continue
        leader = _at(led, act.begun)
        if leader is not None and leader.replica != act.replica:
            problems.append(
                f"{act.replica} did {act.what} {act.name} at {act.begun:%X.%f} though"
                f" {leader.replica} led since {leader.begun:%X.%f}"
            )
        after = _at(led, act.ended)
        if after is not leader and after is not None and after.replica != act.replica:
            in_flight += 1
    evicted = Counter(
        act.name for act in acts if act.what == "delete pods" and act.user.startswith(EVICTOR)
    )
    problems += [f"{name} was evicted {n} times" for name, n in evicted.items() if n > 1]
    return Verdict(problems, in_flight)


def _at(led: Sequence[Term], moment: datetime) -> Term | None:
    return next((term for term in reversed(led) if term.begun <= moment), None)


def taken_over(
    logs: Mapping[str, Sequence[Act]], lost: str, moment: datetime
) -> tuple[str, float] | None:
    """Return which other replica acted first after a moment, and how many seconds later."""
    acts = [
        act
        for replica, each in logs.items()
        if replica != lost
        for act in each
        if act.works and act.ended > moment
    ]
    if not acts:
        return None
    first = min(acts, key=lambda act: act.ended)
    return first.replica, (first.ended - moment).total_seconds()
