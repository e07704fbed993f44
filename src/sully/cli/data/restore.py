"""`sully restore`: make a data directory what a backup says."""

import argparse
import sys
from pathlib import Path

_EPILOG = """\
examples:
  sully restore today.sully --data-dir ./again && sully up --data-dir ./again
  sully restore today.sully --data-dir ./data --force

The backup is checked in full before anything changes. What --force replaces is put aside, not
deleted. Kubeconfigs handed out before the backup work again; clients that followed the old server
are told that their position is gone, and list anew.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Bring a data directory back from a file that 'sully backup' wrote."
    parser.epilog = _EPILOG
    parser.add_argument("file", type=Path, metavar="FILE", help="the backup")
    parser.add_argument(
        "--data-dir",
        type=Path,
        required=True,
        metavar="D",
        help="where to put it; must be empty, or not exist",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="put what is in D aside (as D.replaced-N); no server may run on it",
    )


def run(options: argparse.Namespace) -> int:
    """Restore, and say what came back."""
    from sully.store.errors import StoreError
    from sully.store.restore import restore

    try:
        done = restore(options.file, options.data_dir, force=options.force)
    except (StoreError, OSError) as error:
        print(f"sully restore: {error}", file=sys.stderr)
        return 1
    saved = done.manifest
    when = f"{saved.created:%Y-%m-%d %H:%M} UTC"
    print(f"{options.data_dir}: revision {saved.revision}, saved {when}")
    if done.replaced is not None:
        print(f"what was there is now in {done.replaced}; remove it when you no longer need it")
    return 0
