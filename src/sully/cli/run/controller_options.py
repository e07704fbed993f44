"""Flags of the controllers, for `sully up`, `sully controllers` and `sully plan`.

Each group of flags has a function that returns the settings they stand for.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sully.cli.client.options import choice_option, duration_option, seconds, whole_number
from sully.cli.client.options import options as join
from sully.cli.command import Options, report_warning
from sully.machinery.compat import Compat

if TYPE_CHECKING:
    from sully.client.leases import LeaseTiming
    from sully.controllers.placement.settings import PlacementSettings
    from sully.domain.devicepolicies.sources.prometheus_servers import PrometheusServer
    from sully.domain.notifications.settings import Receiver
    from sully.evictor.settings import EvictionSettings

T = TypeVar("T")

_MOST = 10**9 - 1
"""Thirty years in seconds."""
_LONGEST = timedelta(days=100 * 365)


def _staleness(text: str) -> float:
    bound = seconds(text)
    if 0 < bound < 1:
        raise click.BadParameter(f'invalid duration "{text}" (1s or more, or 0s for no limit)')
    return bound


eviction_options = join(
    click.option(
        "--default-evictions-per-second",
        type=whole_number(),
        default="10",
        show_default=True,
        metavar="N",
        help="Evictions per second for taints without a rate of their own, after a burst of 10."
        " 0 means no limit.",
    ),
    click.option(
        "--max-evictions-per-minute",
        type=whole_number(),
        default="0",
        show_default=True,
        metavar="N",
        help="Evictions per minute for all taints together. 0 means no limit.",
    ),
    duration_option(
        "--max-staleness",
        type=_staleness,
        default="90s",
        help="Do not evict pods based on data that the server has not confirmed for this long."
        " Values below the bookmark interval of a minute cause more list requests. 0s means no"
        " limit.",
    ),
)
history_options = duration_option(
    "--history-retention",
    default="30d",
    help="How long to keep records of evictions and deleted taint rules.",
)


def _endpoint(text: str) -> str:
    from urllib.parse import urlsplit

    from sully.machinery.formats.addresses import is_refused

    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    if not host or parts.scheme not in ("http", "https") or is_refused(host):
        raise click.BadParameter(f'invalid URL "{text}" (for example http://127.0.0.1:4318)')
    return text


notification_options = join(
    click.option(
        "--notifications",
        default="",
        metavar="FILE",
        help="Send notifications of taints, evictions and storms to the receivers in this file.",
    ),
    click.option(
        "--otlp-endpoint",
        type=_endpoint,
        metavar="URL",
        help="Send traces of evictions to this OpenTelemetry collector, as OTLP over HTTP.",
    ),
)
prometheus_options = click.option(
    "--prometheus-servers",
    default="",
    metavar="FILE",
    help="Authenticate queries of DeviceTaintPolicies to the Prometheus servers in this file.",
)
event_options = duration_option(
    "--event-ttl", default="1h", help="How long to keep events. 0s means indefinitely."
)
placement_options = join(
    click.option(
        "--default-cluster-toleration-seconds",
        type=whole_number(maximum=_MOST),
        metavar="N",
        show_default="0",
        help="How long placements without tolerations of their own keep unreachable and unavailable"
        " clusters.",
    ),
    click.option(
        "--cluster-removal-budget-per-minute",
        type=whole_number(maximum=_MOST),
        metavar="N",
        show_default="no limit",
        help="How many clusters per minute may be removed from placements because of their health."
        " 0 removes none.",
    ),
)
log_options = join(
    choice_option(
        "--log-format",
        choices=("console", "json"),
        metavar="FORMAT",
        help_="Log format. With json, all that is written are JSON lines on standard error.",
    ),
    choice_option(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        metavar="LEVEL",
        help_="Log level.",
    ),
)
_LEASE_FLAGS = (
    ("lease-duration", "15s", "How long candidates wait before they take over from a leader."),
    ("renew-deadline", "10s", "How long a leader retries to renew its lease before it stops."),
    ("retry-period", "2s", "How long to wait between attempts."),
)
lease_options = join(
    *(
        duration_option(
            f"--leader-elect-{name}",
            f"--{name}",
            name.replace("-", "_"),
            default=default,
            help=help_,
        )
        for name, default, help_ in _LEASE_FLAGS
    )
)


def notification_receivers(options: Options) -> "tuple[Receiver, ...]":
    """Read the file of --notifications; raise ValueError if it cannot be used."""
    from sully.domain.notifications.settings import parse_settings

    return _parsed("--notifications", options.notifications, parse_settings)


def prometheus_servers(options: Options) -> "tuple[PrometheusServer, ...]":
    """Read the file of --prometheus-servers; raise ValueError if it cannot be used."""
    from sully.domain.devicepolicies.sources.prometheus_servers import parse_servers

    return _parsed("--prometheus-servers", options.prometheus_servers, parse_servers)


def _parsed(flag: str, path: str, parse: Callable[[Any], tuple[T, ...]]) -> tuple[T, ...]:
    if not path:
        return ()
    import yaml

    try:
        with open(path, encoding="utf-8") as file:
            return parse(yaml.safe_load(file))
    except OSError as error:
        raise ValueError(f"{flag}: cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"{flag}: {path}: {error}") from error


def eviction_settings(options: Options) -> "EvictionSettings":
    # A late import: `--help` does not need it.
    from sully.evictor.settings import EvictionSettings

    return EvictionSettings(
        default_per_second=options.default_evictions_per_second or None,
        max_per_minute=options.max_evictions_per_minute or None,
        max_staleness=options.max_staleness or None,
    )


def placement_settings(options: Options) -> "PlacementSettings":
    from sully.controllers.placement.settings import PlacementSettings

    return PlacementSettings(
        toleration_seconds=options.default_cluster_toleration_seconds,
        removals_per_minute=options.cluster_removal_budget_per_minute,
    )


def warn_of_placement(options: Options) -> None:
    if Compat.named(options.compat).allows_placement_limits:
        return
    for name in ("default_cluster_toleration_seconds", "cluster_removal_budget_per_minute"):
        if getattr(options, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            report_warning(f"{flag} has no effect with --compat reference")


def lease_timing(options: Options) -> "LeaseTiming":
    """Return the times of leader election; raise `ValueError` if two leaders would be possible."""
    from sully.client.leases import LeaseTiming

    return LeaseTiming(options.lease_duration, options.renew_deadline, options.retry_period)


def event_retention(options: Options) -> timedelta:
    return _limited(options.event_ttl)


def history_retention(options: Options) -> timedelta:
    return _limited(options.history_retention)


def _limited(retention: float) -> timedelta:
    # Beyond a lifetime it makes no difference, and dates end.
    return timedelta(seconds=min(retention, _LONGEST.total_seconds()))
