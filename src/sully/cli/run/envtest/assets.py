"""`sully envtest-assets`: write a folder for KUBEBUILDER_ASSETS."""

import shlex
import sys
from pathlib import Path

import click

from sully.cli.command import CommandError, Options, command
from sully.cli.run.envtest.programs import PROGRAMS
from sully.runtime.files import write_new

_HELP = """\
Write programs named etcd and kube-apiserver that start Sully.

Set KUBEBUILDER_ASSETS to the folder, and envtest of controller-runtime tests against Sully: its API
server in memory, with the certificates that envtest creates. As there, no controllers run.
"""
_EXAMPLES = """\
# Run the tests of an operator in Go against Sully
sully envtest-assets ./assets
KUBEBUILDER_ASSETS=$PWD/assets go test ./...
"""


@command("envtest-assets", usage="DIR [flags]", help=_HELP, examples=_EXAMPLES)
@click.argument("folder", metavar="DIR")
def envtest_assets(options: Options) -> int:
    folder = Path(options.folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for program in PROGRAMS:
            _write(folder / program)
    except OSError as error:
        raise CommandError(f"cannot write {error.filename}: {error.strerror}") from error
    print(f"export KUBEBUILDER_ASSETS={shlex.quote(str(folder.resolve()))}")
    return 0


def _write(path: Path) -> None:
    module = "sully.cli.run.envtest.programs"
    # -P: tests run in folders of others, whose modules are not for us.
    start = f'exec {shlex.quote(sys.executable)} -P -m {module} {path.name} "$@"'
    write_new(path, f"#!/bin/sh\n{start}\n".encode(), 0o755)
