"""`sully migrate`: copy everything from one kind of store into another."""

import argparse
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from sully.cli.data.etcdflags import add_etcd_flags, etcd_address
from sully.store.etcd.address import SCHEME, Address

if TYPE_CHECKING:
    from sully.store.base import Store
    from sully.store.migration import Migrated

SQLITE = "sqlite:"
_EPILOG = """\
examples:
  sully migrate --from sqlite:./data --to etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379
  sully migrate --from etcd://10.0.0.1:2379/team-a --to sqlite:./data-a

Stop every server that uses either of them first. The target must be empty; the source is only
read. At the end both are read again and compared object by object. Certificates and keys stay in
the data directory: give it to 'sully up' again as --data-dir, and kubeconfigs go on working.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Copy a store into another one, and check every object of the copy."
    parser.epilog = _EPILOG
    form = "sqlite:DIR|etcd://…"
    parser.add_argument("--from", required=True, dest="source", metavar=form, help="what to copy")
    parser.add_argument("--to", required=True, dest="target", metavar=form, help="where to")
    add_etcd_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Copy, compare, and say what was copied."""
    try:
        source, target = _places(options)
    except ValueError as error:
        print(f"sully migrate: {error}", file=sys.stderr)
        return 2
    import uvloop

    from sully.runtime.log import configure as configure_log
    from sully.store.errors import StoreError

    configure_log("console", level="error")
    try:
        done = uvloop.run(_migrate(source, target))
    except (StoreError, OSError) as error:
        print(f"sully migrate: {error}", file=sys.stderr)
        return 1
    print(
        f"{done.objects} objects of {done.resources} resources copied and compared:"
        f" revision {done.source} is now {done.target}"
    )
    return 0


Place = Path | Address
"""A directory, or where an etcd is."""


def _places(options: argparse.Namespace) -> tuple[Place, Place]:
    """Return both stores; `ValueError` says what is wrong with the flags."""
    texts = options.source, options.target
    for text in texts:
        if not text.startswith((SQLITE, SCHEME)) or text == SQLITE:
            raise ValueError(f"{text!r} is no store; use sqlite:DIR or etcd://HOST:PORT,…")
    if options.source == options.target:
        raise ValueError("--from and --to are the same store")
    etcd = [text for text in texts if text.startswith(SCHEME)]
    found = {text: etcd_address(text, options) for text in etcd or texts}
    source, target = (found.get(text) or Path(text.removeprefix(SQLITE)) for text in texts)
    return source, target


async def _migrate(source: Place, target: Place) -> "Migrated":
    from sully.store.migration import migrate

    async with AsyncExitStack() as stack:
        old = await stack.enter_async_context(await _open_source(source))
        new = await stack.enter_async_context(await _open_target(target, old.revision))
        return await migrate(old, new)


async def _open_source(place: Place) -> "Store":
    from sully.store.directory import DATABASE_FILE
    from sully.store.errors import OpenError
    from sully.store.sqlite import SqliteStore

    if isinstance(place, Address):
        return await _etcd(place)
    if not (place / DATABASE_FILE).is_file():
        raise OpenError(f"{place} has no {DATABASE_FILE}: there is nothing to copy")
    return await SqliteStore.open(place)


async def _open_target(place: Place, revision: int) -> "Store":
    """Open an empty store that goes on from a revision."""
    from sully.store.migration import begin_sqlite, check_empty
    from sully.store.sqlite import SqliteStore

    if isinstance(place, Path):
        begin_sqlite(place, revision)
        return await SqliteStore.open(place)
    async with await _etcd(place) as empty:
        await check_empty(empty)
    from sully.store.etcd.store import begin_at

    await begin_at(place, revision)
    return await _etcd(place)


async def _etcd(address: Address) -> "Store":
    from sully.store.errors import OpenError

    try:
        from sully.store.etcd.store import EtcdStore
    except ImportError as error:
        raise OpenError(
            f"{error}: a store in etcd needs more packages; in the checkout:"
            " .venv/bin/pip install --editable '.[etcd]'"
        ) from error
    return await EtcdStore.open(address)
