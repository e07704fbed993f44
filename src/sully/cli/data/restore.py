"""`sully restore`: restore a data directory from a backup."""

from pathlib import Path

import click

from sully.cli.command import CommandError, Options, command

_HELP = """\
Restore a data directory from a file written by 'sully backup'.

The backup is verified before anything changes. With --force, the previous contents are moved aside,
not deleted. Kubeconfigs issued before the backup work again; clients that watched the old server
get the error that their resource version is too old, and list again.
"""
_EXAMPLES = """\
# Restore into a new directory, and run a control plane there
sully restore today.sully --data-dir ./again && sully up --data-dir ./again

# Replace the contents of a data directory
sully restore today.sully --data-dir ./data --force
"""


@command("restore", usage="FILE --data-dir DIR [flags]", help=_HELP, examples=_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Directory to restore to. Must be empty or not exist.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Move existing contents of DIR aside, to DIR.replaced-N. No server may be using it.",
)
def restore(options: Options) -> int:
    from sully.store.backup.restore import restore as restore_archive
    from sully.store.errors import StoreError

    try:
        done = restore_archive(options.file, options.data_dir, force=options.force)
    except (StoreError, OSError) as error:
        raise CommandError(str(error)) from error
    saved = done.manifest
    when = f"{saved.created:%Y-%m-%d %H:%M} UTC"
    print(f"{options.data_dir}: revision {saved.revision}, saved {when}")
    if done.replaced is not None:
        print(f"previous contents moved to {done.replaced}")
    return 0
