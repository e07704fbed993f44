"""`sully doctor`: checks a data directory or a server, one line per check with a remedy."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sully.cli.client.options import client_options
from sully.cli.client.session import Session, call
from sully.cli.command import Options, command

if TYPE_CHECKING:
    from sully.domain.diagnosis.findings import Finding

_HELP = """\
Check an installation, and print one line per check: ok, warning or failure, what was found, and
what to do.

Of a server: health (with its store: SQLite or etcd), clock, versions, client certificate, leases of
the controllers, stale drivers (slices of nodes that do not exist or are not ready, pools with
missing slices). On other API servers than Sully's also: the version of the device API, feature
gates, the kinds of Sully, and the rights of the controllers that 'sully install' has installed.

With --data-dir, of the files of 'sully up', also while no server runs: permissions, free space, who
uses them, certificates, and every object of the store. Then a server is checked only if
--kubeconfig or --context names one. Nothing is changed.

The exit code is 1 if there is a failure. A warning does not change it.
"""
_EXAMPLES = """\
# Check the server in the kubeconfig
sully doctor

# Check the files of a control plane that is stopped
sully doctor --data-dir data

# Check both
sully doctor --data-dir data --kubeconfig data/kubeconfig

# Print everything that is not ok
sully doctor -o json | jq -r '.checks[] | select(.state != "ok").message'
"""


@command("doctor", help=_HELP, examples=_EXAMPLES)
@client_options(namespace="", outputs=("table", "json", "yaml"))
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Data directory to check.",
)
def doctor(options: Options) -> int:
    if options.data_dir is not None and not (options.kubeconfig or options.context):
        return _show(options, _files(options))
    return call(options, "doctor", _check)


async def _check(session: Session) -> int:
    from sully.cli.doctor.servers import check_server

    files = _files(session.options) if session.options.data_dir is not None else []
    return _show(session.options, [*files, *[result async for result in check_server(session)]])


def _files(options: Options) -> "list[Finding]":
    from sully.cli.doctor.files import check_directory
    from sully.runtime.clock import SystemClock

    return list(check_directory(options.data_dir, SystemClock().now()))


def _show(options: Options, findings: "Sequence[Finding]") -> int:
    from sully.cli.output.printers import print_document, without_empty
    from sully.domain.diagnosis.findings import has_failure

    if options.output == "table":
        _print(findings)
    else:
        checks = [
            without_empty(
                name=finding.check,
                state=finding.state,
                message=finding.message,
                remedy=finding.remedy,
            )
            for finding in findings
        ]
        print_document({"checks": checks}, options.output, ("checks",))
    return 1 if has_failure(findings) else 0


def _print(findings: "Sequence[Finding]") -> None:
    for finding in findings:
        print(f"{finding.state:7}  {finding.check}: {finding.message}")
        if finding.remedy:
            print(f"{'':7}  -> {finding.remedy}")
