"""`sully capabilities`: what an API server has, and what Sully therefore does there."""

import argparse
from typing import TYPE_CHECKING

from sully.cli.client.calling import Session, call
from sully.cli.client.flags import add_client_flags

if TYPE_CHECKING:
    from sully.domain.capabilities.duties import Evictor
    from sully.domain.capabilities.offers import Offer

_EPILOG = """\
examples:
  sully capabilities                     of the server that the kubeconfig names
  sully capabilities --evictor sully     if its own eviction controller were switched off

'sully controllers' shows the same table when it connects to a server that is not Sully's.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Show what an API server offers, and what Sully runs and leaves there."
    parser.epilog = _EPILOG
    add_client_flags(parser, namespace="", outputs=("table", "json", "yaml"))
    parser.add_argument(
        "--evictor",
        default="auto",
        choices=("auto", "server", "sully"),
        help="as given to 'sully controllers' (default: auto)",
    )


def run(options: argparse.Namespace) -> int:
    """Print the table."""
    return call(options, "capabilities", _show)


async def _show(session: Session) -> int:
    # Late imports: `--help` needs none of this.
    from sully.client.discovery.capabilities import ask
    from sully.domain.capabilities.offers import offer

    found = offer(await ask(session.transport))
    if session.options.output == "table":
        show(found, session.options.evictor)
    else:
        _write(found, session.options)
    return 0


def show(found: "Offer", evictor: "Evictor") -> None:
    """Print the table for people."""
    from sully.cli.client.tables import Column, Table
    from sully.domain.capabilities.table import rows

    columns = (Column("SUBJECT"), Column("THE SERVER HAS", shrinks=2), Column("SULLY", shrinks=1))
    Table(columns).show(rows(found, evictor))


def _write(found: "Offer", options: argparse.Namespace) -> None:
    from sully.cli.client.documents import show_document
    from sully.controller_setup import CONTROLLERS
    from sully.domain.capabilities.duties import duties

    body = {
        "version": found.version,
        "sully": found.own,
        "devices": found.devices,
        "deviceTaints": found.taints_kept,
        "rules": found.rules,
        "ownKinds": sorted(found.own_kinds),
        "controllers": [
            {"name": each.name, "runs": each.runs, "why": each.why}
            for each in duties(found, CONTROLLERS, options.evictor)
        ],
    }
    show_document(body, options.output)
