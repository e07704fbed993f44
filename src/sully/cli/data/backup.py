"""`sully backup`: save a data directory into one file, also while a server runs on it.

A running server copies its own store: nobody else may open it. The keys are read from the
directory, by whoever may read it, and never cross the network.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

_EPILOG = """\
examples:
  sully backup today.sully                       of ./data, whether a server runs there or not
  sully backup --data-dir /var/lib/sully /backups/$(date +%F).sully

The file holds all objects, and the keys that make existing kubeconfigs work: keep it as safe as
the data directory. It has at least every write that was acknowledged before the command began.
'sully restore' brings it back.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Save everything in a data directory, keys included, into one file."
    parser.epilog = _EPILOG
    parser.add_argument("file", type=Path, metavar="FILE", help="where to save it (mode 0600)")
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=Path("data"),
        metavar="D",
        help="what to save (default: ./data)",
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")


def run(options: argparse.Namespace) -> int:
    """Save, and say what was saved."""
    from sully import __version__
    from sully.client.http.download import RefusedError
    from sully.client.kubeconfig.credentials import AccessError
    from sully.client.transport import UnreachableError
    from sully.runtime.clock import SystemClock
    from sully.store.backup import write_archive
    from sully.store.errors import StoreError

    if options.file.exists() and not options.force:
        print(f"sully backup: {options.file} exists; --force replaces it", file=sys.stderr)
        return 1
    if not options.file.absolute().parent.is_dir():
        print(f"sully backup: {options.file}: no such file or directory", file=sys.stderr)
        return 1
    try:
        with _copy(options.data_dir, options.file.absolute().parent) as copy:
            made = write_archive(
                options.file.absolute(),
                copy,
                options.data_dir,
                now=SystemClock().now(),
                program=f"sully {__version__}",
            )
    except (StoreError, OSError, AccessError, RefusedError, UnreachableError) as error:
        print(f"sully backup: {error}", file=sys.stderr)
        return 1
    what = f"{options.data_dir} at revision {made.revision}"
    print(f"{options.file}: {what}, {made.size / 2**20:.1f} MiB")
    return 0


@contextmanager
def _copy(directory: Path, scratch: Path) -> Iterator[BinaryIO]:
    from sully.store.backup import copy_of_stopped
    from sully.store.errors import InUseError

    with ExitStack() as stack:
        try:
            copy = stack.enter_context(copy_of_stopped(directory))
        except InUseError:
            copy = stack.enter_context(_copy_of_running(directory, scratch))
        yield copy


@contextmanager
def _copy_of_running(directory: Path, scratch: Path) -> Iterator[BinaryIO]:
    """Let the server that has the directory make the copy."""
    from sully.client.http.download import download
    from sully.client.kubeconfig.kubeconfig import load_kubeconfig

    access = load_kubeconfig([directory / "kubeconfig"], required=True).access()
    # Beside the target, where there must be room for it anyway.
    with tempfile.TemporaryFile(dir=scratch) as file:
        asyncio.run(download(access, "/backup", file))
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        yield file
