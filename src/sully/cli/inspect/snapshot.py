"""`sully snapshot`: save a cluster's state into a file, for questions without the cluster."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sully.cli.client.calling import CommandError, Session, call
from sully.cli.client.flags import add_client_flags
from sully.cli.client.taking import take

if TYPE_CHECKING:
    from sully.views.snapshot.snapshot import Snapshot

_EPILOG = """\
examples:
  sully snapshot cluster.yaml && sully devices --tainted --snapshot cluster.yaml
  sully snapshot cluster.json                 quicker to read where there are many objects
  sully snapshot - | gzip > cluster.yaml.gz

The file is a List as 'kubectl get -o yaml' prints it; managed fields it has only of rules, patches,
clusters and placements. It has whole pods, with whatever their specs say: keep it as safe as the
cluster's own objects. What you may not list is left out, and said. Files are read packed, too.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Save devices, claims, pods, nodes, rules, clusters and records to a file."
    parser.epilog = _EPILOG
    parser.add_argument(
        "file", metavar="FILE", help="where to save it (mode 0600); - is the standard output"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.add_argument(
        "-o",
        "--output",
        default="",
        choices=("yaml", "json"),
        help="the form (default: json for a FILE that ends so, else yaml)",
    )
    add_client_flags(
        parser, namespace="of what is in namespaces only this one (default: all)", outputs=()
    )


def run(options: argparse.Namespace) -> int:
    """Take a snapshot and save it."""
    if options.file != "-" and Path(options.file).exists() and not options.force:
        print(f"sully snapshot: {options.file} exists; --force replaces it", file=sys.stderr)
        return 1
    return call(options, "snapshot", _save)


async def _save(session: Session) -> int:
    from sully.views.kinds import SLICES
    from sully.views.snapshot.file import write_snapshot
    from sully.views.snapshot.kinds import EVERYTHING

    options = session.options
    path = Path(options.file)
    needed = [each for each in EVERYTHING if each.plural == SLICES.plural]
    found = await take(session, EVERYTHING, needed=needed, namespace=session.namespace)
    form = options.output or ("json" if path.suffix == ".json" else "yaml")
    data = write_snapshot(found, as_json=form == "json", namespace=session.namespace)
    if options.file == "-":
        sys.stdout.buffer.write(data)
    else:
        write_file(path, data)
    print(f"{options.file}: {_summary(found)}", file=sys.stderr)
    return 0


def write_file(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    from sully.runtime.files import write_private

    try:
        write_private(path, data)
    except OSError as error:
        raise CommandError(f"{path}: {(error.strerror or str(error)).lower()}") from error


def _summary(found: "Snapshot") -> str:
    from sully.cli.client.words import number
    from sully.views.snapshot.kinds import EVERYTHING

    counts = {each.kind: len(found.of(each)) for each in EVERYTHING}
    devices = sum(
        len(pool) for each in found.inventory.pools() if (pool := found.inventory.pool(each))
    )
    texts = [number(devices, "device")]
    texts += [number(counts[kind], kind) for kind in ("Node", "Pod", "ResourceClaim")]
    texts += [number(n, kind) for kind in ("ManagedCluster", "Placement") if (n := counts[kind])]
    return ", ".join(texts) + f", {number(sum(counts.values()), 'object')} in all"
