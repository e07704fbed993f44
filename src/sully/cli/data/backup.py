"""`sully backup`: save a data directory to a file, also while a server uses it.

A running server copies its own store, which no other process may open. The keys are read from the
directory, by a user who may read it, and never cross the network.
"""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from sully import __version__
from sully.cli.client.options import data_dir_option
from sully.cli.command import CommandError, Options, command

_HELP = """\
Back up a data directory to a file, with all objects and keys. The server may be running.

The file has mode 0600 and contains the keys behind existing kubeconfigs: keep it as safe as the
data directory. It contains at least all writes acknowledged before the command started. Restore
it with 'sully restore'.
"""
_EXAMPLES = """\
# Back up ./data
sully backup today.sully

# Back up another data directory
sully backup --data-dir /var/lib/sully /backups/$(date +%F).sully
"""


@command("backup", usage="FILE [flags]", help=_HELP, examples=_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@data_dir_option("Data directory to back up.")
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
def backup(options: Options) -> int:
    from sully.client.http.download import RefusedError
    from sully.client.kubeconfig.credentials import AccessError
    from sully.client.transport import UnreachableError
    from sully.runtime.clock import SystemClock
    from sully.store.backup.archive import write_archive
    from sully.store.errors import StoreError

    if options.file.exists() and not options.force:
        raise CommandError(f"{options.file} exists (use --force to overwrite it)")
    if not options.file.absolute().parent.is_dir():
        raise CommandError(f"{options.file}: no such file or directory")
    try:
        with _copy(options.data_dir, options.file.absolute().parent) as copy:
            archive = write_archive(
                options.file.absolute(),
                copy,
                options.data_dir,
                now=SystemClock().now(),
                program=f"sully {__version__}",
            )
    except (StoreError, OSError, AccessError, RefusedError, UnreachableError) as error:
        raise CommandError(str(error)) from error
    what = f"{options.data_dir} at revision {archive.revision}"
    print(f"{options.file}: {what}, {archive.size / 2**20:.1f} MiB")
    return 0


@contextmanager
def _copy(directory: Path, scratch: Path) -> Iterator[BinaryIO]:
    from sully.store.backup.archive import back_up_stopped
    from sully.store.errors import InUseError

    with ExitStack() as stack:
        try:
            copy = stack.enter_context(back_up_stopped(directory))
        except InUseError:
            copy = stack.enter_context(_copy_of_running(directory, scratch))
        yield copy


@contextmanager
def _copy_of_running(directory: Path, scratch: Path) -> Iterator[BinaryIO]:
    """Copy the store through the server that uses the directory."""
    from sully.client.http.download import download
    from sully.client.kubeconfig.kubeconfig import load_kubeconfig

    access = load_kubeconfig([directory / "kubeconfig"], required=True).access()
    # Beside the target, which needs the space anyway.
    with tempfile.TemporaryFile(dir=scratch) as file:
        asyncio.run(download(access, "/backup", file))
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        yield file
