"""`sully simulate-nodes`: nodes with devices that exist only in the API of some server."""

import asyncio
import re
import signal
from collections.abc import Callable, Sequence
from shlex import quote
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from sully.cli.client.options import connection_options, whole_number
from sully.cli.client.session import Session, call
from sully.cli.command import USAGE_ERROR, CommandError, Options, command, report_warning
from sully.cli.process import INTERRUPTED
from sully.cli.run.announce import announce
from sully.cli.run.controller_options import log_options
from sully.cli.run.up.simulated import DEVICES, non_negative_seconds
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from sully.controllers.framework.manager import Manager
    from sully.controllers.simulatednodes.wiring import SimulatedNodeSettings
    from sully.domain.simulated.fleet import Fleet
    from sully.domain.simulated.neighbors import Neighbors

PREFIX = "simulated"
_PREFIX = re.compile(r"[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?")
_SHOWN = 3
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_HELP = """\
Simulate nodes with devices on any API server, like kwok.

Creates Nodes, their ResourceSlices, and a DeviceClass with the name of the driver. Pods that are
scheduled on the nodes become Running and Ready; pods that are deleted terminate. Nothing is
executed. A pod with the annotation sully.dev/simulated-exit, such as 0@5s, ends with that exit code
after that time, for example the pods of a Job.

Ctrl-C deletes the nodes, the pods on them and the devices, and the DeviceClass if it was created
here. Other nodes and pods on them are never changed. If the cluster has other nodes, --yes is
required, and the simulated nodes get the taint sully.dev/simulated=true:NoSchedule.
"""
_EXAMPLES = """\
# Three nodes with four devices each, until Ctrl-C
sully simulate-nodes --nodes 3 --devices 4

# Devices of another driver, on nodes with a label
sully simulate-nodes --kubeconfig K --driver gpu.example.com --label rack=r7

# Keep the nodes after Ctrl-C, and delete them later
sully simulate-nodes --keep
sully simulate-nodes --delete
"""


@command("simulate-nodes", help=_HELP, examples=_EXAMPLES)
@click.option(
    "--nodes",
    type=whole_number(1, 10_000),
    default="3",
    metavar="N",
    show_default=True,
    help="Number of nodes. Surplus nodes of an earlier run are deleted.",
)
@click.option(
    "--devices",
    type=whole_number(0, 512),
    default=str(DEVICES),
    metavar="N",
    show_default=True,
    help="Number of devices of each node.",
)
@click.option(
    "--driver",
    default="gpu.sully.dev",
    metavar="NAME",
    show_default=True,
    help="Driver of the devices, and name of the DeviceClass that selects them.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="Label of the nodes. Can be repeated.",
)
@click.option(
    "--name-prefix",
    default=PREFIX,
    metavar="PREFIX",
    show_default=True,
    help="Prefix of the names of the nodes. Processes on one server need different prefixes.",
)
@click.option(
    "--start-seconds",
    type=non_negative_seconds,
    default="0.5",
    metavar="S",
    show_default=True,
    help="How long pods take to start.",
)
@click.option(
    "--stop-seconds",
    type=non_negative_seconds,
    default="1",
    metavar="S",
    show_default=True,
    help="How long pods take to stop, at most their grace period.",
)
@click.option("--keep", is_flag=True, help="Do not delete anything at the end.")
@click.option(
    "--delete", is_flag=True, help="Delete the nodes of an earlier run with this prefix, and exit."
)
@click.option(
    "--yes", "-y", is_flag=True, help="Add simulated nodes to a cluster that has other nodes."
)
@log_options
@connection_options
def simulate_nodes(options: Options) -> int:
    if options.keep and options.delete:
        raise CommandError("--keep and --delete cannot be used together", USAGE_ERROR)
    fleet = _fleet(options)
    return call(options, "simulate-nodes", lambda session: _work(session, fleet), lasting=True)


async def _work(session: Session, fleet: "Fleet") -> int:
    # Late imports: `--help` does not need them.
    from sully.controllers.simulatednodes.preflight import find_neighbors, try_fleet
    from sully.controllers.simulatednodes.wiring import SimulatedNodeSettings
    from sully.domain.simulated.fleet import PodDelays
    from sully.runtime.log import configure as configure_log

    options = session.options
    configure_log(options.log_format, level=options.log_level)
    announce(f"API server:  {session.server}", "starting", server=session.server)
    if options.delete:
        await _delete(session, fleet)
        return 0
    others = await find_neighbors(session.transport, fleet)
    _check(others, confirmed=options.yes)
    fleet = replace(fleet, tainted=bool(others.names))
    await try_fleet(session.transport, fleet, session.clock)
    delays = PodDelays(options.start_seconds, options.stop_seconds)
    manager = _manager(session, SimulatedNodeSettings(fleet, delays))
    _stop_on_signals(manager.stop)
    try:
        await _run(manager, fleet, keep=options.keep)
        if not options.keep:
            await _delete(session, fleet)
    except asyncio.CancelledError:
        report_warning(f"interrupted; to delete the nodes, run: {_removal(options)}")
        return INTERRUPTED
    return 0


def _fleet(options: Options) -> "Fleet":
    from sully.domain.simulated.fleet import Fleet

    if not _PREFIX.fullmatch(options.name_prefix):
        raise CommandError(
            f'--name-prefix: invalid prefix "{options.name_prefix}" (lower-case letters, digits and'
            " dashes, for example gpu-a)",
            USAGE_ERROR,
        )
    return Fleet(
        options.nodes,
        options.devices,
        driver=options.driver,
        prefix=options.name_prefix,
        labels=_labels(options.labels),
    )


def _labels(texts: Sequence[str]) -> dict[str, str]:
    labels = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise CommandError(
                f'--label: invalid label "{text}" (for example rack=r7)', USAGE_ERROR
            )
        labels[key] = value
    return labels


def _check(others: "Neighbors", *, confirmed: bool) -> None:
    """Refuse a cluster with other nodes, unless that was confirmed."""
    if others.conflicts:
        raise CommandError(
            f'node "{others.conflicts[0]}" exists and is not simulated\n'
            "  choose other names with --name-prefix"
        )
    if others.names and not confirmed:
        shown = ", ".join(others.names[:_SHOWN]) + (", ..." if len(others.names) > _SHOWN else "")
        are = "is" if len(others.names) == 1 else "are"
        raise CommandError(
            f"the cluster has {number_of(len(others.names), 'node')} that {are} not simulated:"
            f" {shown}\n"
            "  use --yes to add simulated nodes, which only pods that tolerate the taint"
            " sully.dev/simulated=true:NoSchedule are scheduled on"
        )


def _manager(session: Session, settings: "SimulatedNodeSettings") -> "Manager":
    from sully.controllers.framework.manager import Manager
    from sully.controllers.simulatednodes.nodes import USER_AGENT
    from sully.controllers.simulatednodes.wiring import add_simulated_nodes

    manager = Manager(session.transport, clock=session.clock)
    add_simulated_nodes(manager, env=manager.env(session.transport, USER_AGENT), settings=settings)
    return manager


def _stop_on_signals(stop: Callable[[], None]) -> None:
    """Stop at the first signal; the second one also interrupts the removal."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def stop_first() -> None:
        stop()
        for signum in _SIGNALS:
            loop.add_signal_handler(signum, lambda: task and task.cancel())

    for signum in _SIGNALS:
        loop.add_signal_handler(signum, stop_first)


async def _run(manager: "Manager", fleet: "Fleet", *, keep: bool) -> None:
    async with asyncio.TaskGroup() as tasks:
        announcing = tasks.create_task(_announce(manager, fleet, keep=keep))
        await manager.run()
        announcing.cancel()


async def _announce(manager: "Manager", fleet: "Fleet", *, keep: bool) -> None:
    await manager.settled()
    first, last = fleet.name(0), fleet.name(fleet.nodes - 1)
    names = first if first == last else f"{first} to {last}"
    devices = number_of(fleet.devices, "device")
    announce(
        f"nodes:       {names}, with {devices} each of {fleet.driver}\n"
        f"ready: Ctrl-C {'stops, and keeps' if keep else 'deletes'} the nodes",
        "ready",
        nodes=fleet.nodes,
        devices=fleet.devices,
        driver=fleet.driver,
    )


async def _delete(session: Session, fleet: "Fleet") -> None:
    from sully.controllers.simulatednodes.removal import remove_fleet

    removed = await remove_fleet(session.transport, fleet)
    announce(f"{number_of(removed, 'simulated node')} deleted", "nodes deleted", nodes=removed)


def _removal(options: Options) -> str:
    """Return the command that deletes what is left."""
    flags = {"--kubeconfig": options.kubeconfig, "--context": options.context}
    flags |= {"--driver": options.driver, "--name-prefix": options.name_prefix}
    set_flags = (f" {name} {quote(str(value))}" for name, value in flags.items() if value)
    return f"sully simulate-nodes --delete{''.join(set_flags)}"
