"""The flags of `sully up` that no other command has."""

import click

from sully.cli.client.options import (
    Decorator,
    choice_option,
    compat_option,
    feature_gates_option,
    whole_number,
)
from sully.cli.client.options import options as join
from sully.store.etcd.address import SCHEME


def _store(text: str) -> str:
    if text not in ("sqlite", "memory") and not text.startswith(SCHEME):
        raise click.BadParameter(
            f'unknown store "{text}" (one of: sqlite, memory, etcd://HOST:PORT,...)'
        )
    return text


def _limit(flag: str, default: int, help_: str, unlimited: str = "no limit") -> Decorator:
    return click.option(
        flag,
        type=whole_number(),
        default=str(default),
        show_default=True,
        metavar="N",
        help=f"{help_} 0 means {unlimited}.",
    )


store_option = click.option(
    "--store",
    default="sqlite",
    type=_store,
    show_default=True,
    metavar="sqlite|memory|etcd://...",
    help="Where objects are stored: sqlite in the data directory, memory not at all, and"
    " etcd://HOST:PORT,...[/PREFIX] in etcd, shared with other replicas.",
)
listen_option = click.option(
    "--listen",
    default="127.0.0.1:8443",
    show_default=True,
    metavar="HOST:PORT",
    help="Address to serve on. Port 0 selects a free port.",
)
api_options = join(
    feature_gates_option("Features to enable or disable. An unknown name lists the known ones."),
    click.option(
        "--runtime-config",
        default="",
        metavar="GROUP/VERSION=false,...",
        show_default="all enabled",
        help="API versions to disable, also by stage: api/beta=false,api/alpha=false leaves what"
        " Kubernetes serves by default.",
    ),
    compat_option("reference behaves exactly like Kubernetes, without Sully's extensions."),
)
controller_switches = join(
    click.option(
        "--disable-controllers",
        is_flag=True,
        help="Serve the API only. Run the controllers with 'sully controllers'.",
    ),
    click.option("--disable-scheduler", is_flag=True, help="Leave pods to another scheduler."),
)
access_options = join(
    click.option(
        "--tls-san",
        multiple=True,
        metavar="NAME",
        help="Additional name or address in the server certificate. Can be repeated.",
    ),
    choice_option(
        "--anonymous-auth",
        choices=("false", "true"),
        show_default="false, or true with --compat reference",
        metavar="BOOL",
        help_="If true, RBAC decides what system:anonymous may do. If false, only health and"
        " version endpoints answer requests without credentials.",
    ),
    click.option(
        "--audit-log",
        metavar="FILE",
        type=click.Path(),
        show_default="audit.log in the data directory",
        help="File for audit events (writes, denied and impersonated requests) as JSON lines."
        " - is standard output, '' disables it. Requests of unauthenticated clients are written to"
        " FILE-unauthenticated, at a limited rate.",
    ),
    click.option("--audit-reads", is_flag=True, help="Also audit allowed reads. Many more events."),
)
limit_options = join(
    _limit(
        "--max-requests-inflight",
        400,
        "Concurrent reads of all users except system:masters. Each priority level has a reserved"
        " share, and one user gets at most half of what the level can use.",
    ),
    _limit("--max-mutating-requests-inflight", 200, "Concurrent writes, divided in the same way."),
    _limit(
        "--max-watches-per-user",
        1000,
        "Open watches of one user, or of all service accounts of one namespace.",
    ),
    _limit(
        "--max-connections",
        0,
        "Open connections. A tenth is reserved for system:masters, a tenth for them, nodes and"
        " other system users.",
        "as many as the limit of open files allows",
    ),
    _limit(
        "--max-connections-per-address",
        1000,
        "Unauthenticated connections from one address (IPv6: one /64 network). A new one closes the"
        " oldest.",
    ),
    _limit(
        "--max-connections-per-user",
        2000,
        "Connections of one user, or of all service accounts of one namespace. A new one closes the"
        " one that has been idle the longest. Does not apply to system:masters.",
    ),
)
