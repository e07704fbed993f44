"""The flags of `sully maintenance create`, and the object that they describe."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from sully.cli.change.drain.args import check_then, force_options, then_option
from sully.cli.change.taint.args import read_rate
from sully.cli.client.options import (
    choice_option,
    count_or_percentage,
    duration_option,
    seconds,
    selecting_option,
)
from sully.cli.client.options import options as join
from sully.cli.command import CommandError, Options
from sully.cli.names import complete_classes

if TYPE_CHECKING:
    from sully.machinery.selectors.labels import Requirement

Obj = dict[str, Any]
MAX_LATE = timedelta(minutes=5)
"""How long ago a maintenance may start: a clock may be wrong, or a command may have waited."""

selector_options = join(
    click.option("--all", "all_devices", is_flag=True, help="Select all devices."),
    selecting_option("--driver", default="", metavar="NAME", help="Select devices of a driver."),
    selecting_option("--pool", default="", metavar="NAME", help="Select devices of a pool."),
    selecting_option("--device", default="", metavar="NAME", help="Select devices of this name."),
    selecting_option(
        "--class",
        "class_name",
        default="",
        metavar="NAME",
        shell_complete=complete_classes,
        help="Select devices of a DeviceClass.",
    ),
    selecting_option("--cel", multiple=True, metavar="EXPRESSION", help="Select devices by CEL."),
    selecting_option(
        "--uuid", multiple=True, metavar="UUID", help="Select devices by their UUIDs."
    ),
    selecting_option(
        "--selector",
        "-l",
        default="",
        metavar="LABELS",
        help="Select devices on nodes with these labels, for example zone=a.",
    ),
)
create_options = join(
    selector_options,
    click.option(
        "--start",
        default="",
        metavar="TIME",
        help="Required for create. When the work begins: now, a duration from now (8h), or a"
        " time as in RFC 3339, not in the past.",
    ),
    click.option("--end", default="", metavar="TIME", help="When the work has to be over."),
    duration_option("--for", "lasts", help="How long the window is, instead of --end."),
    duration_option(
        "--close-before",
        help="How long devices are closed before pods are evicted, so that jobs can finish.",
    ),
    choice_option(
        "--by",
        choices=("Device", "Node"),
        metavar="UNIT",
        help_="Work on one device, or on all selected devices of a node together.",
    ),
    click.option(
        "--max-unavailable",
        type=count_or_percentage,
        default="1",
        show_default=True,
        metavar="N|PERCENT%",
        help="How many devices, or nodes, are closed at the same time.",
    ),
    duration_option(
        "--wait-ready",
        show_default="10m",
        help="How long replacements may take to become Ready. 0s does not wait for them.",
    ),
    click.option(
        "--rate",
        "eviction_rate",
        type=read_rate,
        default="1",
        show_default=True,
        metavar="N[/PERIOD]",
        help="Evictions per second, or per period: 10/m, 1/5m.",
    ),
    duration_option(
        "--timeout",
        show_default="until --end",
        help="How long a device or node is drained at most.",
    ),
    then_option,
    click.option("--when-idle", is_flag=True, help="Do not evict pods: wait for them to finish."),
    force_options,
    click.option(
        "--approval", is_flag=True, help="After the drain, wait for 'sully maintenance approve'."
    ),
    click.option(
        "--proof",
        is_flag=True,
        help="After the work, require a second 'sully maintenance approve' before devices are"
        " returned to service.",
    ),
    click.option(
        "--reason", default="", metavar="TEXT", help="Reason, shown in taints and events."
    ),
)


def build_maintenance(options: Options, name: str, now: datetime) -> Obj:
    """Return the object that the flags describe."""
    if not options.start:
        raise CommandError("missing flag: --start (now, for example 8h, or a time)", code=2)
    check_then(options)
    start = _time("--start", options.start, now)
    if start < now - MAX_LATE:
        raise CommandError(
            f"--start {options.start} is in the past: it is {_text(now)} now\n"
            "  use --start now to begin immediately",
            code=2,
        )
    spec: Obj = {
        "selector": _selector(options),
        "start": _text(start),
        "closeBefore": _duration(options.close_before),
        "rolling": _without_empty(
            by=options.by,
            maxUnavailable=options.max_unavailable,
            waitForReady=_duration(options.wait_ready),
        ),
        "drain": _without_empty(
            mode="WhenIdle" if options.when_idle else "",
            rate=options.eviction_rate if options.eviction_rate != "0" else "1000/s",
            timeout=_duration(options.timeout),
            then="NoExecute" if options.then == "NoExecute" else "Fail",
            force=options.force,
            ignoreDaemonSets=options.ignore_daemonsets,
        ),
        "hook": {"type": "Approval"} if options.approval else None,
        "proof": {"type": "Manual"} if options.proof else None,
        "reason": options.reason,
        "end": _text(_time("--end", options.end, now)) if options.end else None,
        "duration": _duration(options.lasts),
    }
    return {
        "apiVersion": "sully.dev/v1alpha1",
        "kind": "DeviceMaintenance",
        "metadata": {"name": name},
        "spec": _without_empty(**spec),
    }


def _selector(options: Options) -> Obj:
    from sully.machinery.selectors.labels import SelectorError, parse

    selector = _without_empty(
        matchAll=options.all_devices,
        driver=options.driver,
        pool=options.pool,
        device=options.device,
        deviceClassName=options.class_name,
        selectors=[{"cel": {"expression": text}} for text in options.cel],
        identities=list(options.uuid),
    )
    if options.selector:
        try:
            requirements = parse(options.selector).requirements
        except SelectorError as error:
            raise CommandError(f"-l {options.selector}: {error}", code=2) from error
        selector["nodeSelector"] = {"matchExpressions": list(map(_expression, requirements))}
    if not selector:
        raise CommandError(
            "no devices specified: use --driver, --pool, --device, --class, --cel, --uuid, -l or"
            " --all",
            code=2,
        )
    return selector


def _expression(requirement: "Requirement") -> Obj:
    operators = {"exists": "Exists", "!": "DoesNotExist", "notin": "NotIn", "!=": "NotIn"}
    operator = operators.get(requirement.operator, "In")
    if requirement.operator in ("gt", "lt"):
        raise CommandError(f"-l {requirement}: nodes are not selected by comparisons", code=2)
    values = {"values": list(requirement.values)} if requirement.values else {}
    return {"key": requirement.key, "operator": operator, **values}


def _time(flag: str, text: str, now: datetime) -> datetime:
    from sully.machinery.formats.timestamps import TimeError, parse_time

    if text == "now":
        return now
    try:
        return parse_time(text)
    except TimeError:
        pass
    try:
        return now + timedelta(seconds=seconds(text))
    except (ValueError, click.UsageError) as error:
        raise CommandError(
            f"{flag}: invalid time '{text}' (now, 8h, or 2026-01-02T15:04:05Z)", code=2
        ) from error


def _text(time: datetime) -> str:
    from sully.machinery.formats.timestamps import format_time

    return format_time(time)


def _duration(value: float | None) -> str:
    return f"{value:g}s" if value is not None else ""


def _without_empty(**fields: Any) -> Obj:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {}, False)}
