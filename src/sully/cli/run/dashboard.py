"""`sully dashboard`: serve the dashboard on this machine, in front of any cluster."""

import asyncio
import os
import signal
import socket
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING

import click

from sully.cli.client.options import connection_options, impersonation, whole_number
from sully.cli.client.session import Session, call
from sully.cli.command import CommandError, Options, command
from sully.cli.run.announce import announce
from sully.cli.run.controller_options import log_options

if TYPE_CHECKING:
    from sully.dashboard.app import Routes

_HOST = "127.0.0.1"
_HELP = """\
Show devices, taints, evictions and placements of a cluster in a web browser.

The dashboard is served on this machine only, and uses the cluster of the kubeconfig with its
credentials, or with a bearer token that you paste. The link that is printed opens one session;
anyone with the link can act as you until the session ends. 'sully up' serves the dashboard as well.
"""
_EXAMPLES = """\
# Open the dashboard of the cluster of the current context
sully dashboard

# Open no browser, on a fixed port
sully dashboard --no-browser --port 8080
"""


@command("dashboard", help=_HELP, examples=_EXAMPLES)
@click.option(
    "--port",
    default="0",
    show_default="a free one",
    metavar="N",
    type=whole_number(0, 65535),
    help="Port to serve on.",
)
@click.option("--no-browser", is_flag=True, help="Print the link, but open no browser.")
@log_options
@connection_options
def dashboard(options: Options) -> int:
    from sully.runtime.log import configure as configure_log

    configure_log(options.log_format, level=options.log_level)
    try:
        listening = socket.create_server((_HOST, options.port))
    except OSError as error:
        raise CommandError(
            f"cannot listen on {_HOST}:{options.port}: {os.strerror(error.errno or 0).lower()}\n"
            "  use another --port"
        ) from error
    with listening:
        return call(options, "dashboard", partial(_run, listening=listening), lasting=True)


async def _run(session: Session, listening: socket.socket) -> int:
    from sully.client.kubeconfig.kubeconfig import find_access
    from sully.dashboard.app import Dashboard
    from sully.dashboard.serving import serving

    # An error in the address or the credentials is better reported here than in the browser.
    await session.transport.document("/version")
    options, stopped = session.options, asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    access = find_access(options.kubeconfig, options.context, impersonate=impersonation(options))
    port = listening.getsockname()[1]
    hosts = [f"{name}:{port}" for name in (_HOST, "localhost")]
    async with (
        Dashboard(lambda: access, load_routes, session.clock, hosts=hosts) as app,
        serving(app, listening),
    ):
        link = app.link(f"http://{_HOST}:{port}")
        announce_link(session.server, link, opens_browser=not options.no_browser)
        if not options.no_browser:
            # Some programs do not end before the browser is closed: nothing waits for them.
            Thread(target=_open_browser, args=(link,), daemon=True).start()
        await stopped.wait()
        app.stopping.set()
    return 0


def announce_link(server: str, link: str, *, opens_browser: bool) -> None:
    """Print the link; a JSON log has it only if there is no other way to get it."""
    fields = {"server": server} if opens_browser else {"server": server, "url": link}
    announce(f"API server:  {server}\ndashboard:   {link}", "dashboard ready", **fields)


def load_routes() -> "Routes":
    """Import what the pages need; most starts of `sully up` need none of it."""
    from sully.cli.dashboard.routes import routes

    return routes()


def _open_browser(link: str) -> None:
    import webbrowser

    if not webbrowser.open(link):
        announce("no browser could be opened; open the link yourself", "no browser", url=link)
