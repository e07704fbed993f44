"""`sully signal-receiver`: receive alerts and other signals about devices over HTTP."""

import asyncio
import hmac
import signal
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sully.cli.client.options import connection_options, duration_option, parse_address
from sully.cli.client.session import Session, call
from sully.cli.command import USAGE_ERROR, CommandError, Options, command
from sully.cli.run.announce import announce
from sully.cli.run.controller_options import log_options

if TYPE_CHECKING:
    import ssl

    from sully.monitor.receiver import Check

_PORT = 9099
_HELP = """\
Receive signals about devices over HTTP, and record them as DeviceHealths, for policies.

POST /alertmanager takes the webhook of Alertmanager, POST /signals the following:

\b
  {"signals": [{"device": {"uuid": "GPU-..."}, "key": "fan",
                "severity": "Warning", "status": "firing",
                "time": "2026-01-01T12:00:00Z"}]}

Devices are named by UUID, by PCI address or index and node, or as DRIVER/POOL/DEVICE; in alerts by
labels such as UUID, pci_bus_id, gpu and Hostname. The status is firing or resolved.

Every request needs a bearer token: one in --token-file, or else one of a user who may post to the
path, by TokenReview and SubjectAccessReview. On addresses other than the loopback one, TLS is used.
Requests can be repeated; signals that are older than what is known are ignored.
"""
_EXAMPLES = """\
# Receive on this machine, with a token of your own
sully signal-receiver --token-file token

# Receive alerts in a cluster; those that are not repeated expire
sully signal-receiver --listen 0.0.0.0:9099 --expire-after 12h
"""


@command("signal-receiver", help=_HELP, examples=_EXAMPLES)
@click.option(
    "--listen",
    default=f"127.0.0.1:{_PORT}",
    metavar="HOST:PORT",
    show_default=True,
    help="Where to receive requests.",
)
@click.option(
    "--token-file",
    default="",
    metavar="FILE",
    help="File with the tokens that are accepted, one per line. It is read for each request.",
)
@click.option("--tls-cert-file", default="", metavar="FILE", help="Certificate of the server.")
@click.option("--tls-private-key-file", default="", metavar="FILE", help="Its private key.")
@duration_option("--expire-after", help="How long an alert counts, unless it is sent again.")
@log_options
@connection_options
def signal_receiver(options: Options) -> int:
    from sully.runtime.log import configure as configure_log

    configure_log(options.log_format, level=options.log_level)
    try:
        host, port = parse_address("--listen", options.listen, _PORT)
    except ValueError as error:
        raise CommandError(str(error), USAGE_ERROR) from error
    if bool(options.tls_cert_file) != bool(options.tls_private_key_file):
        raise CommandError(
            "--tls-cert-file and --tls-private-key-file are required together", USAGE_ERROR
        )
    if options.token_file and not tokens(options.token_file):
        raise CommandError(f"--token-file: no token found in {options.token_file}")
    return call(options, "signal-receiver", partial(_run, host=host, port=port), lasting=True)


def tokens(file: str) -> list[bytes]:
    """Return the tokens of a file; none if it cannot be read."""
    try:
        return [line.strip() for line in Path(file).read_bytes().splitlines() if line.strip()]
    except OSError:
        return []


def static_check(file: str) -> "Check":
    """Return what accepts the tokens of a file; they can be replaced while it runs."""

    async def check(authorization: str, _path: str) -> int:
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() != "bearer":
            return 401
        actual = token.encode("utf-8", "surrogatepass")
        # All of them, so that the time reveals nothing.
        matches = [hmac.compare_digest(actual, known) for known in tokens(file)]
        return 200 if any(matches) else 401

    return check


async def _run(session: Session, host: str, port: int) -> int:
    from sully.client.metrics_authorizer import MetricsAuthorizer
    from sully.monitor.receiver import Receiver, receiving
    from sully.monitor.signals import SignalRecorder

    options, clock, stopped = session.options, session.clock, asyncio.Event()
    if options.token_file:
        check = static_check(options.token_file)
    else:
        check = MetricsAuthorizer(session.transport, clock, verb="post").check
    expire = None if options.expire_after is None else timedelta(seconds=options.expire_after)
    recorder = SignalRecorder(session.transport, clock=clock)
    receiver = Receiver(recorder, check, clock=clock, expire_after=expire)
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, stopped.set)
    tls = _tls(session, host)
    async with receiving(receiver, host, port, tls) as bound:
        url = f"{'http' if tls is None else 'https'}://{host}:{bound}"
        announce(
            f"API server:  {session.server}\nreceiving:   {url}/signals, {url}/alertmanager",
            "receiving",
            server=session.server,
            url=url,
        )
        await stopped.wait()
    return 0


def _tls(session: Session, host: str) -> "ssl.SSLContext | None":
    """Return how the server identifies itself; None on an address that others cannot reach."""
    import ssl
    from socket import gethostname

    from sully.runtime.metrics_server import is_local
    from sully.server.net.records import ServerContext
    from sully.server.net.tls import self_signed_context

    options = session.options
    if options.tls_cert_file:
        context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(options.tls_cert_file, options.tls_private_key_file)
        except (OSError, ssl.SSLError) as error:
            raise CommandError(f"--tls-cert-file: {error}") from error
        return context
    return None if is_local(host) else self_signed_context(gethostname(), session.clock.now())
