"""`sully monitor`: measure the health of the devices of this node and report it."""

import asyncio
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sully.cli.client.options import connection_options, duration_option
from sully.cli.client.session import Session, call
from sully.cli.command import USAGE_ERROR, Choice, CommandError, Options, command
from sully.cli.output.text import did_you_mean
from sully.cli.run.announce import announce
from sully.cli.run.controller_options import log_options

if TYPE_CHECKING:
    from sully.domain.health.gpus import Settings
    from sully.monitor.agent import Agent

_LIBRARIES = ("nvml",)
_DRIVER = "gpu.nvml.sully.dev"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SLICES = (
    "published slices are for tests of scheduling: no driver prepares these GPUs, so pods that get"
    " them cannot use them"
)
_HELP = """\
Measure the health of the GPUs of this node, and report it as a DeviceHealth with the name of the
node.

With nvml, the library of NVIDIA's driver is asked for XIDs, memory errors, row remapping,
throttling, PCIe and NVLink errors, the state of the fabric, and what the driver wants to be done
with a GPU. Needs the Python package nvidia-ml-py: pip install 'sully[monitor]'.

The report is renewed as long as the agent runs. If it is not, the health of the devices is Unknown.
XIDs of applications expire; fatal ones stay until the driver requires no recovery any more, the
node is restarted, or the report is deleted, which acknowledges them.

The agent sets no taints. It needs permission to get, create and update DeviceHealths;
'sully install --monitor nvml' runs it on all nodes with GPUs.
"""
_EXAMPLES = """\
# Measure once and print the report, without a server
sully monitor nvml --once

# Report as node-7 until Ctrl-C
sully monitor nvml --node-name node-7 --kubeconfig K

# Treat an XID as a fault that NVIDIA attributes to applications
sully monitor nvml --xid 31=fatal

# Where no DRA driver runs: publish the GPUs, to test scheduling
sully monitor nvml --publish-slices
"""


@command("monitor", usage="nvml [flags]", help=_HELP, examples=_EXAMPLES)
@click.argument("library", type=Choice(_LIBRARIES), metavar="LIBRARY")
@click.option(
    "--once", is_flag=True, help="Measure once, print the report and exit. Needs no server."
)
@click.option(
    "--node-name",
    default="",
    envvar="NODE_NAME",
    metavar="NAME",
    show_default="NODE_NAME, or the host name",
    help="Name of the Node.",
)
@duration_option("--interval", default="5s", help="Time between two measurements.")
@duration_option(
    "--stale-after",
    default="40s",
    help="How long a report is valid. It is renewed four times in this time.",
)
@duration_option(
    "--hold", default="5m", help="How long an event counts after it was last observed."
)
@duration_option(
    "--timeout",
    default="30s",
    help="How long the driver may take to answer before that is a fault.",
)
@click.option(
    "--xid",
    "xids",
    multiple=True,
    metavar="NUMBER=CLASS",
    help="Class of an XID: fatal, application, informational or unclassified. Can be repeated.",
)
@click.option(
    "--nvml-library",
    default="",
    metavar="FILE",
    show_default="libnvidia-ml.so.1",
    help="Path to the library of the driver, if the loader does not find it.",
)
@click.option(
    "--publish-slices",
    is_flag=True,
    help="Also publish the GPUs as a ResourceSlice, for tests of scheduling where no DRA driver"
    " does. Pods that get these devices cannot use them.",
)
@click.option(
    "--driver",
    default=_DRIVER,
    metavar="NAME",
    show_default=True,
    help="Driver of the published slices.",
)
@log_options
@connection_options
def monitor(options: Options) -> int:
    from sully.runtime.log import configure as configure_log

    settings = _settings(options)
    if options.once:
        return _print(options, settings)
    configure_log(options.log_format, level=options.log_level)
    return call(options, "monitor", lambda session: _run(session, settings), lasting=True)


def _settings(options: Options) -> "Settings":
    from datetime import timedelta

    from sully.domain.health.gpus import Settings

    if not 4 <= options.stale_after <= 24 * 3600:
        raise CommandError("--stale-after: must be between 4s and 24h", USAGE_ERROR)
    if not options.interval:
        raise CommandError("--interval: must be greater than 0s", USAGE_ERROR)
    return Settings(
        node=options.node_name or socket.gethostname().lower(),
        boot_id=_boot_id(),
        lease_seconds=int(options.stale_after),
        hold=timedelta(seconds=options.hold),
        xids=_xids(options.xids),
    )


def _xids(texts: Sequence[str]) -> dict[int, str]:
    from sully.domain.health.xids import XID_CLASSES

    classes = {}
    for text in texts:
        number, _, name = text.partition("=")
        if not number.isdecimal() or name not in XID_CLASSES:
            raise CommandError(
                f'--xid: invalid value "{text}" (NUMBER=CLASS, with one of:'
                f" {', '.join(XID_CLASSES)}){did_you_mean(name, XID_CLASSES)}",
                USAGE_ERROR,
            )
        classes[int(number)] = name
    return classes


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _print(options: Options, settings: "Settings") -> int:
    """Measure once, and print what would be reported."""
    import msgspec
    import yaml

    from sully.api.sully.types import DeviceHealth
    from sully.domain.health.gpus import GpuMonitor
    from sully.machinery.meta import ObjectMeta
    from sully.monitor.nvml import Nvml, NvmlError
    from sully.runtime.clock import SystemClock

    measured, now = GpuMonitor(settings), SystemClock().now()
    try:
        nvml = Nvml.open(options.nvml_library)
        measured.sampled(nvml.read(), now=now)
        nvml.close()
    except NvmlError as error:
        raise CommandError(f"cannot measure with NVML: {error}") from error
    report = DeviceHealth(metadata=ObjectMeta(name=settings.node), spec=measured.report(now=now))
    obj = {
        "apiVersion": "sully.dev/v1alpha1",
        "kind": "DeviceHealth",
        "metadata": {"name": settings.node},
        "spec": msgspec.to_builtins(report.spec),
    }
    print(yaml.safe_dump(obj, sort_keys=False), end="")
    return 0


async def _run(session: Session, settings: "Settings") -> int:
    agent = _agent(session, settings)
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, agent.stop)
    announce(
        f"API server:  {session.server}\nnode:        {settings.node}\n"
        "reporting: Ctrl-C stops; the report then becomes stale",
        "reporting",
        server=session.server,
        node=settings.node,
    )
    await agent.run()
    return 0


def _agent(session: Session, settings: "Settings") -> "Agent":
    from sully.domain.health.gpus import GpuMonitor
    from sully.monitor.agent import Agent, Timing
    from sully.monitor.nvml import Nvml
    from sully.monitor.slices import SlicePublisher

    options, publisher = session.options, None
    if options.publish_slices:
        session.warn(f"warning: {_SLICES}")
        publisher = SlicePublisher(session.transport, node=settings.node, driver=options.driver)
    timing = Timing(
        interval=options.interval, renew=options.stale_after / 4, timeout=options.timeout
    )
    return Agent(
        session.transport,
        GpuMonitor(settings),
        lambda: Nvml.open(options.nvml_library),
        clock=session.clock,
        timing=timing,
        publisher=publisher,
    )
