"""`sully migrate`: copy all objects from one store to another."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sully.cli.command import USAGE_ERROR, CommandError, Options, command
from sully.cli.data.etcd_options import etcd_address, etcd_options
from sully.store.errors import OpenError, StoreError
from sully.store.etcd.address import SCHEME, Address, open_etcd

if TYPE_CHECKING:
    from sully.store.base import Store
    from sully.store.migration import MigrationResult

SQLITE = "sqlite:"
_STORE = "sqlite:DIR|etcd://..."
_HELP = """\
Copy all objects from one store to another, then compare every object of the copy.

Stop all servers that use either store first. The target must be empty; the source is only read.
Certificates and keys stay in the data directory: pass it to 'sully up' as --data-dir again, and
kubeconfigs keep working.
"""
_EXAMPLES = """\
# Move a control plane from SQLite to etcd
sully migrate --from sqlite:./data --to etcd://10.0.0.1:2379,10.0.0.2:2379

# Copy one prefix of etcd to a new data directory
sully migrate --from etcd://10.0.0.1:2379/team-a --to sqlite:./data-a
"""


@command("migrate", usage="--from STORE --to STORE [flags]", help=_HELP, examples=_EXAMPLES)
@click.option("--from", "source", required=True, metavar=_STORE, help="Store to copy from.")
@click.option("--to", "target", required=True, metavar=_STORE, help="Store to copy to.")
@etcd_options
def migrate(options: Options) -> int:
    try:
        source, target = _stores(options)
    except ValueError as error:
        raise CommandError(str(error), USAGE_ERROR) from error
    import uvloop

    from sully.runtime.log import configure as configure_log

    configure_log("console", level="error")
    try:
        done = uvloop.run(_migrate(source, target))
    except (StoreError, OSError) as error:
        raise CommandError(str(error)) from error
    print(
        f"{done.objects} objects of {done.resources} resources copied and compared:"
        f" revision {done.source} is now {done.target}"
    )
    return 0


Location = Path | Address
"""A data directory, or the address of an etcd."""


def _stores(options: Options) -> tuple[Location, Location]:
    """Return both stores; raise `ValueError` for invalid flags."""
    texts = options.source, options.target
    for text in texts:
        if not text.startswith((SQLITE, SCHEME)) or text == SQLITE:
            raise ValueError(f'invalid store "{text}" (sqlite:DIR or etcd://HOST:PORT,...)')
    if options.source == options.target:
        raise ValueError("--from and --to are the same store")
    etcd = [text for text in texts if text.startswith(SCHEME)]
    addresses = {text: etcd_address(text, options) for text in etcd or texts}
    source, target = (addresses.get(text) or Path(text.removeprefix(SQLITE)) for text in texts)
    return source, target


async def _migrate(source: Location, target: Location) -> "MigrationResult":
    from sully.store.migration import migrate as copy_store

    async with AsyncExitStack() as stack:
        old = await stack.enter_async_context(await _open_source(source))
        new = await stack.enter_async_context(await _open_target(target, old.revision))
        return await copy_store(old, new)


async def _open_source(location: Location) -> "Store":
    from sully.store.directory import DATABASE_FILE
    from sully.store.sqlite.store import SqliteStore

    if isinstance(location, Address):
        return await open_etcd(location)
    if not (location / DATABASE_FILE).is_file():
        raise OpenError(f"{location} has no {DATABASE_FILE}: there is nothing to copy")
    return await SqliteStore.open(location)


async def _open_target(location: Location, revision: int) -> "Store":
    """Open an empty store that continues from a revision."""
    from sully.store.migration import begin_sqlite, check_empty
    from sully.store.sqlite.store import SqliteStore

    if isinstance(location, Path):
        begin_sqlite(location, revision)
        return await SqliteStore.open(location)
    async with await open_etcd(location) as empty:
        await check_empty(empty)
    from sully.store.etcd.store import begin_at

    await begin_at(location, revision)
    return await open_etcd(location)
