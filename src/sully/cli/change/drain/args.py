"""The flags of `cordon`, `drain` and `uncordon`, and what they mean for the drain core."""

import sys
from datetime import timedelta
from shlex import join as shell_join
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from sully.cli.change.taint.args import read_rate
from sully.cli.client.options import (
    choice_option,
    count_or_percentage,
    duration_option,
    server_flags,
    whole_number,
)
from sully.cli.client.options import options as join
from sully.cli.command import CommandError, Options
from sully.cli.names import SUBJECTS, names
from sully.cli.selection.args import (
    DEVICE_KINDS,
    SelectionArgs,
    read_selection,
    selection_options,
    split_kind,
)

if TYPE_CHECKING:
    from sully.api.resource.eviction_rate import EvictionRate
    from sully.cli.client.session import Session
    from sully.domain.drain.messages import DrainSettings

USAGE = "device|node|class NAME... [flags]"
RULES_HELP = """\
Devices are cordoned with DeviceTaintRules that have the taint sully.dev/unschedulable:NoSchedule.
Nothing has to be installed in the cluster: its own scheduler honors them."""


def complete_selection(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete device, node or class, and their names."""
    arguments = list(ctx.params.get("arguments") or ())
    if not arguments:
        return [kind for kind in DEVICE_KINDS if kind.startswith(incomplete)]
    subjects = {**SUBJECTS, "node": "nodes", "class": "deviceclasses"}
    return names(subjects.get(arguments[0], subjects["device"]), incomplete, ctx.params)


selection_arguments = click.argument("arguments", nargs=-1, shell_complete=complete_selection)
cordon_options = join(
    selection_options,
    click.option(
        "--reason", default="", metavar="TEXT", help="Why the devices are cordoned, for others."
    ),
    duration_option(
        "--for",
        "lasts",
        help="Uncordon the devices after this time, for example 2h. Requires the controllers of"
        " Sully.",
    ),
)
then_option = choice_option(
    "--then",
    choices=("fail", "NoExecute"),
    case_sensitive=False,
    metavar="ACTION",
    help_="What to do about pods that remain after --timeout. NoExecute evicts them whatever their"
    " PodDisruptionBudgets allow, and without --rate on Kubernetes.",
)
force_options = join(
    click.option(
        "--force",
        is_flag=True,
        help="Also evict pods that would not run elsewhere: those without a controller and those"
        " of DaemonSets.",
    ),
    click.option(
        "--ignore-daemonsets", is_flag=True, help="Leave pods of DaemonSets on the devices."
    ),
)
drain_options = join(
    cordon_options,
    click.option(
        "--rate",
        "eviction_rate",
        type=read_rate,
        default="1",
        show_default=True,
        metavar="N[/PERIOD]",
        help="Evictions per second, or per period: 10/m, 1/5m. 0 means no limit.",
    ),
    click.option(
        "--burst",
        type=whole_number(1, 1000),
        default="1",
        show_default=True,
        metavar="N",
        help="How many pods may be evicted immediately, before the rate limits them.",
    ),
    click.option(
        "--max-unavailable",
        type=count_or_percentage,
        metavar="N|PERCENT%",
        help="Evict no more pods while this many have no Ready replacement. A percentage of the"
        " pods to evict is rounded up, as in PodDisruptionBudgets.",
    ),
    click.option("--one-at-a-time", is_flag=True, help="The same as --max-unavailable 1."),
    duration_option(
        "--wait-ready",
        default="10m",
        help="How long a replacement may take to become Ready before the drain stops. 0s does not"
        " wait for replacements.",
    ),
    duration_option(
        "--timeout",
        show_default="no timeout",
        help="How long to try before giving up, for example if a PodDisruptionBudget blocks.",
    ),
    then_option,
    click.option(
        "--when-idle",
        is_flag=True,
        help="Do not evict pods: wait until those on the devices have finished.",
    ),
    force_options,
    click.option(
        "--delete-emptydir-data",
        is_flag=True,
        help="Evict pods with emptyDir volumes without asking; the data in them is deleted.",
    ),
)


def parse_selection(options: Options) -> SelectionArgs:
    return read_selection(options, *split_kind(options.arguments))


def _rate(options: Options) -> "EvictionRate | None":
    """Return the rate of --rate and --burst; None means no limit."""
    from sully.api.resource.eviction_rate import parse_rate

    if options.eviction_rate == "0":
        return None
    return replace(parse_rate(options.eviction_rate), burst=options.burst)


def check_then(options: Options) -> None:
    """Refuse NoExecute without a time after which it is used."""
    if options.then == "NoExecute" and options.timeout is None:
        raise CommandError("--then NoExecute requires --timeout", code=2)


def drain_settings(options: Options) -> "DrainSettings":
    """Return the limits of a drain; refuse flags that contradict each other."""
    from sully.domain.drain.messages import DrainSettings

    if options.one_at_a_time and options.max_unavailable not in (None, 1):
        raise CommandError("--one-at-a-time and --max-unavailable contradict each other", code=2)
    most = 1 if options.one_at_a_time else options.max_unavailable
    if most is not None and not options.wait_ready:
        raise CommandError("--max-unavailable cannot be used with --wait-ready 0s", code=2)
    check_then(options)
    if options.when_idle and most is not None:
        raise CommandError("--when-idle evicts no pods; omit --max-unavailable", code=2)
    return DrainSettings(
        rate=_rate(options),
        max_unavailable=most,
        wait_ready=_delta(options.wait_ready) if options.wait_ready else None,
        timeout=None if options.timeout is None else _delta(options.timeout),
        use_no_execute=options.then == "NoExecute",
        evicts=not options.when_idle,
    )


def _delta(duration: float) -> timedelta:
    return timedelta(seconds=duration)


def selection_arguments_of(options: Options) -> list[str]:
    """Return the arguments and flags that select devices, as they were passed."""
    flags: tuple[tuple[str, Any], ...] = (
        ("--class", options.classes),
        ("--cel", options.cel),
        ("-l", (options.selector,) if options.selector else ()),
        ("--uuid", options.uuid),
        ("--pci", options.pci),
    )
    return [
        *options.arguments,
        *(part for flag, values in flags for x in values for part in (flag, x)),
    ]


def undo_command(options: Options) -> str:
    selection = shell_join(selection_arguments_of(options))
    return f"sully uncordon {selection}{server_flags(options)}"


def same_command(session: "Session") -> str:
    """Return the command that runs now."""
    return session.command_line or f"sully {shell_join(sys.argv[1:])}"
