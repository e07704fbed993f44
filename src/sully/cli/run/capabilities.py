"""`sully capabilities`: what an API server supports, and what Sully runs there."""

import click

from sully.cli.client.options import client_options, evictor_option
from sully.cli.client.session import Session, call
from sully.cli.command import USAGE_ERROR, CommandError, Options, command

_HELP = """\
Show what an API server supports, which controllers Sully runs there, and which feature gates are
enabled.

If 'sully install' has installed controllers, their flags count, unless you set others here.
'sully controllers' prints the first table when it connects to a server that is not Sully's.
"""
_EXAMPLES = """\
# Show the capabilities of the server in the kubeconfig
sully capabilities

# Show what would run if the server's eviction controller were disabled
sully capabilities --evictor sully

# Show what would run if only some controllers were selected
sully capabilities --only expiry,history
"""


@command("capabilities", help=_HELP, examples=_EXAMPLES)
@client_options(namespace="", outputs=("table", "json", "yaml"))
@evictor_option("As passed to 'sully controllers'.", show_default="as installed, or auto")
@click.option(
    "--only",
    default="",
    metavar="A,B",
    show_default="as installed, or all",
    help="As passed to 'sully controllers'.",
)
def capabilities(options: Options) -> int:
    return call(options, "capabilities", _show)


async def _show(session: Session) -> int:
    # Late imports: `--help` needs none of this.
    from sully.cli.output.printers import print_document
    from sully.cli.run.capabilities_printer import (
        control_plane_document,
        document,
        show,
        show_gates,
    )
    from sully.client.discovery.capabilities import probe
    from sully.client.discovery.control_plane import installation
    from sully.domain.capabilities.offers import offer
    from sully.domain.capabilities.table import flags_of

    chosen = _chosen(session.options.only)
    offered = offer(await probe(session.transport))
    installed = await installation(session.transport, offered)
    plane = await session.transport.control_plane()
    evictor, only = flags_of(installed, session.options.evictor, chosen)
    if session.options.output == "table":
        show(offered, evictor, only, plane)
        show_gates(plane)
    else:
        body = document(offered, evictor, only) | control_plane_document(plane)
        body["deviceTaints"] = offered.stores_taints and plane.honors_taints
        print_document(body, session.options.output)
    return 0


def _chosen(text: str) -> frozenset[str] | None:
    from sully.remote import chosen_controllers

    try:
        return chosen_controllers(text)
    except ValueError as error:
        raise CommandError(f"--only: {error}", USAGE_ERROR) from error
