"""What can happen to machines, and how it ends; never so that clients have nobody left to ask.

`target` is the machine that it happens to, the one that leads where `leader` says so. `moves` says
whether the controllers must move to another replica because of it; then it lasts until they have.
One kind takes the majority of etcd away: nothing may go on then, and all must afterwards.
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
class Trouble:
    """One kind of trouble."""

    name: str
    begin: Act
    end: Act = _nothing
    """What more than mending the network it takes."""
    leader: bool = True
    moves: bool = False
    silence: bool = False
    """Whether nobody can write or read anything while it lasts."""


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
        for each in acts:
            each(machines, target, other)

    return act


TROUBLES = (
    Trouble(
        name="leader killed, a member of etcd frozen elsewhere",
        begin=_both(_kill_replica, _on_other(_freeze_member)),
        end=_both(_on_other(_thaw_member), _start_replica),
        moves=True,
    ),
    Trouble(name="leader's machine cut off", begin=_cut_off, moves=True),
    Trouble(name="leader killed", begin=_kill_replica, end=_start_replica, moves=True),
    Trouble(name="leader frozen", begin=_freeze_replica, end=_thaw_replica, moves=True),
    Trouble(name="leader stopped in order", begin=_stop_replica, end=_start_replica, moves=True),
    Trouble(
        name="leader's machine without power",
        begin=_both(_kill_replica, _kill_member),
        end=_both(_start_member, _start_replica),
        moves=True,
    ),
    Trouble(name="leader cut from other machines, not from clients", begin=_cut_back, moves=True),
    Trouble(name="leader's machine hears no other machine", begin=_deaf, moves=True),
    Trouble(name="leader's machine is heard by no other machine", begin=_mute, moves=True),
    Trouble(name="leader cut from clients, not from etcd", begin=_cut_front),
    Trouble(name="leader's machine cut off for a moment", begin=_cut_off),
    Trouble(name="leader's member of etcd killed", begin=_kill_member, end=_start_member),
    Trouble(name="leader's member of etcd frozen", begin=_freeze_member, end=_thaw_member),
    Trouble(name="leader's machine parted from another", begin=_part),
    Trouble(name="another machine cut off", begin=_cut_off, leader=False),
    Trouble(
        name="another replica killed, another member frozen",
        begin=_both(_kill_replica, _on_other(_freeze_member)),
        end=_both(_on_other(_thaw_member), _start_replica),
        leader=False,
    ),
    Trouble(name="another replica frozen", begin=_freeze_replica, end=_thaw_replica, leader=False),
    Trouble(
        name="majority of etcd cut off",
        begin=_both(_cut_back, _on_other(_cut_back)),
        silence=True,
    ),
    Trouble(
        name="majority of etcd killed",
        begin=_both(_kill_member, _on_other(_kill_member)),
        end=_both(_start_member, _on_other(_start_member)),
        silence=True,
    ),
)
SHORT = TROUBLES[:2]
"""What a short run does."""


def plan(chance: Random, number: int) -> Sequence[Trouble]:
    """Return what happens, in which order: the short ones in theirs, all of them in any."""
    if number <= len(SHORT):
        return SHORT[:number]
    found: list[Trouble] = []
    while len(found) < number:
        found += chance.sample(TROUBLES, len(TROUBLES))
    return found[:number]
