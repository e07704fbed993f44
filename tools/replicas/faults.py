"""The faults of machines, and how they end; clients can always reach some replica.

`target` is the machine with the fault, the leading one with `leader`. With `moves` the controllers
must move to another replica; then the fault lasts until they have. One kind stops the majority of
etcd: no request may succeed then, and all must afterwards.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from replicas.machines import Machine, Machines

Act = Callable[[Machines, Machine, Machine], None]
"""Does something to all, to the target, or to one of the others."""


def _nothing(_: Machines, __: Machine, ___: Machine) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One kind of fault."""

    name: str
    begin: Act
    end: Act = _nothing
    """What to do in addition to healing the network."""
    leader: bool = True
    moves: bool = False
    total_outage: bool = False
    """Whether no client can read or write while it lasts."""


def _kill_replica(_: Machines, target: Machine, __: Machine) -> None:
    target.end(signal.SIGKILL)


def _start_replica(_: Machines, target: Machine, __: Machine) -> None:
    target.start()


def _stop_replica(_: Machines, target: Machine, __: Machine) -> None:
    target.end(signal.SIGTERM)


def _freeze_replica(_: Machines, target: Machine, __: Machine) -> None:
    target.send(signal.SIGSTOP)


def _thaw_replica(_: Machines, target: Machine, __: Machine) -> None:
    target.send(signal.SIGCONT)


def _kill_member(machines: Machines, target: Machine, _: Machine) -> None:
    machines.etcd.kill(target.member)


def _start_member(machines: Machines, target: Machine, _: Machine) -> None:
    machines.etcd.start(target.member)


def _freeze_member(machines: Machines, target: Machine, _: Machine) -> None:
    machines.etcd.freeze(target.member)


def _thaw_member(machines: Machines, target: Machine, _: Machine) -> None:
    machines.etcd.thaw(target.member)


def _cut_off(_: Machines, target: Machine, __: Machine) -> None:
    target.host.cut("front")
    target.host.cut("back")


def _cut_back(_: Machines, target: Machine, __: Machine) -> None:
    target.host.cut("back")


def _cut_front(_: Machines, target: Machine, __: Machine) -> None:
    target.host.cut("front")


def _deaf(_: Machines, target: Machine, __: Machine) -> None:
    target.host.cut("back", "inbound")


def _mute(_: Machines, target: Machine, __: Machine) -> None:
    target.host.cut("back", "outbound")


def _part(machines: Machines, target: Machine, other: Machine) -> None:
    machines.network.part(target.host, other.host)


def _on_other(act: Act) -> Act:
    return lambda machines, target, other: act(machines, other, target)


def _both(*acts: Act) -> Act:
    def act(machines: Machines, target: Machine, other: Machine) -> None:
        for step in acts:
            step(machines, target, other)

    return act


FAULTS = (
    Fault(
        name="leader killed, a member of etcd frozen elsewhere",
        begin=_both(_kill_replica, _on_other(_freeze_member)),
        end=_both(_on_other(_thaw_member), _start_replica),
        moves=True,
    ),
    Fault(name="leader's machine cut off", begin=_cut_off, moves=True),
    Fault(name="leader killed", begin=_kill_replica, end=_start_replica, moves=True),
    Fault(name="leader frozen", begin=_freeze_replica, end=_thaw_replica, moves=True),
    Fault(name="leader stopped gracefully", begin=_stop_replica, end=_start_replica, moves=True),
    Fault(
        name="leader's machine without power",
        begin=_both(_kill_replica, _kill_member),
        end=_both(_start_member, _start_replica),
        moves=True,
    ),
    Fault(name="leader cut from other machines, not from clients", begin=_cut_back, moves=True),
    Fault(name="leader's machine hears no other machine", begin=_deaf, moves=True),
    Fault(name="leader's machine is heard by no other machine", begin=_mute, moves=True),
    Fault(name="leader cut from clients, not from etcd", begin=_cut_front),
    Fault(name="leader's machine cut off for a moment", begin=_cut_off),
    Fault(name="leader's member of etcd killed", begin=_kill_member, end=_start_member),
    Fault(name="leader's member of etcd frozen", begin=_freeze_member, end=_thaw_member),
    Fault(name="leader's machine parted from another", begin=_part),
    Fault(name="another machine cut off", begin=_cut_off, leader=False),
    Fault(
        name="another replica killed, another member frozen",
        begin=_both(_kill_replica, _on_other(_freeze_member)),
        end=_both(_on_other(_thaw_member), _start_replica),
        leader=False,
    ),
    Fault(name="another replica frozen", begin=_freeze_replica, end=_thaw_replica, leader=False),
    Fault(
        name="majority of etcd cut off",
        begin=_both(_cut_back, _on_other(_cut_back)),
        total_outage=True,
    ),
    Fault(
        name="majority of etcd killed",
        begin=_both(_kill_member, _on_other(_kill_member)),
        end=_both(_start_member, _on_other(_start_member)),
        total_outage=True,
    ),
)
SHORT = FAULTS[:2]
"""What a short run does."""


def plan(rng: Random, number: int) -> Sequence[Fault]:
    """Return the faults of a run: the short ones in their order, all of them in any."""
    if number <= len(SHORT):
        return SHORT[:number]
    faults: list[Fault] = []
    while len(faults) < number:
        faults += rng.sample(FAULTS, len(FAULTS))
    return faults[:number]
