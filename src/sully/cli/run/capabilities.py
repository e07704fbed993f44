"""`sully capabilities`: what an API server supports, and what Sully runs there."""

from typing import TYPE_CHECKING

from sully.cli.client.options import client_options, evictor_option
from sully.cli.client.session import Session, call
from sully.cli.command import Options, command

if TYPE_CHECKING:
    from sully.domain.capabilities.duties import Evictor
    from sully.domain.capabilities.offers import Offer

_HELP = """\
Show what an API server supports, and which controllers Sully runs there.

'sully controllers' prints the same table when it connects to a server that is not Sully's.
"""
_EXAMPLES = """\
# Show the capabilities of the server in the kubeconfig
sully capabilities

# Show what would run if the server's eviction controller were disabled
sully capabilities --evictor sully
"""


@command("capabilities", help=_HELP, examples=_EXAMPLES)
@client_options(namespace="", outputs=("table", "json", "yaml"))
@evictor_option("As passed to 'sully controllers'.")
def capabilities(options: Options) -> int:
    return call(options, "capabilities", _show)


async def _show(session: Session) -> int:
    # Late imports: `--help` needs none of this.
    from sully.client.discovery.capabilities import probe
    from sully.domain.capabilities.offers import offer

    offered = offer(await probe(session.transport))
    if session.options.output == "table":
        show(offered, session.options.evictor)
    else:
        _write(offered, session.options)
    return 0


def show(offered: "Offer", evictor: "Evictor") -> None:
    from sully.cli.client.tables import Column, Table
    from sully.domain.capabilities.table import rows

    columns = (Column("SUBJECT"), Column("SERVER", shrinks=2), Column("SULLY", shrinks=1))
    Table(columns).show(rows(offered, evictor))


def _write(offered: "Offer", options: Options) -> None:
    from sully.cli.client.printers import print_document
    from sully.controller_setup import CONTROLLERS
    from sully.domain.capabilities.duties import duties

    body = {
        "version": offered.version,
        "sully": offered.own,
        "devices": offered.devices,
        "deviceTaints": offered.taints_kept,
        "rules": offered.rules,
        "ownKinds": sorted(offered.own_kinds),
        "controllers": [
            {"name": duty.name, "runs": duty.runs, "reason": duty.why}
            for duty in duties(offered, CONTROLLERS, options.evictor)
        ],
    }
    print_document(body, options.output)
