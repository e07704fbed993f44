"""`sully snapshot`: save the state of a cluster to a file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sully.cli.client.options import client_options
from sully.cli.client.session import Session, call
from sully.cli.client.snapshots import take_snapshot
from sully.cli.command import Choice, CommandError, Options, command

if TYPE_CHECKING:
    from sully.views.snapshot.snapshot import Snapshot

_HELP = """\
Save devices, claims, pods, nodes, rules, clusters, placements and records to a file. Other commands
read it with --snapshot.

The file is a List as 'kubectl get -o yaml' prints it, with mode 0600. It contains whole pods: keep
it as safe as the objects in the cluster. Kinds that you may not list are left out, with a warning.
Use - for standard output. --snapshot also reads compressed files.
"""
_EXAMPLES = """\
# Save a snapshot, then list the tainted devices in it
sully snapshot cluster.yaml && sully devices --tainted --snapshot cluster.yaml

# Save it as JSON, which is faster to read
sully snapshot cluster.json

# Save it compressed
sully snapshot - | gzip > cluster.yaml.gz
"""


@command("snapshot", usage="FILE [flags]", help=_HELP, examples=_EXAMPLES)
@click.argument("file", metavar="FILE (use - for standard output)", type=click.Path())
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.option(
    "--output",
    "-o",
    type=Choice(("yaml", "json")),
    show_default="json for FILE.json, otherwise yaml",
    metavar="FORMAT",
    help="Output format. One of: yaml, json.",
)
@client_options(namespace="If present, only namespaced objects in this namespace.", outputs=())
def snapshot(options: Options) -> int:
    if options.file != "-" and Path(options.file).exists() and not options.force:
        raise CommandError(f"{options.file} exists (use --force to overwrite it)")
    return call(options, "snapshot", _save)


async def _save(session: Session) -> int:
    from sully.views.kinds import SLICES
    from sully.views.snapshot.file import write_snapshot
    from sully.views.snapshot.kinds import EVERYTHING

    options = session.options
    path = Path(options.file)
    needed = [kind for kind in EVERYTHING if kind.plural == SLICES.plural]
    snapshot = await take_snapshot(
        session, EVERYTHING, needed=needed, namespace=session.namespace, gates=True
    )
    form = options.output or ("json" if path.suffix == ".json" else "yaml")
    data = write_snapshot(snapshot, as_json=form == "json", namespace=session.namespace)
    if options.file == "-":
        sys.stdout.buffer.write(data)
    else:
        write_file(path, data)
    print(f"{options.file}: {_summary(snapshot)}", file=sys.stderr)
    return 0


def write_file(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, atomically."""
    from sully.runtime.files import write_private

    try:
        write_private(path, data)
    except OSError as error:
        raise CommandError(f"{path}: {(error.strerror or str(error)).lower()}") from error


def _summary(snapshot: "Snapshot") -> str:
    from sully.machinery.formats.plurals import number_of
    from sully.views.snapshot.kinds import EVERYTHING

    counts = {kind.kind: len(snapshot.of(kind)) for kind in EVERYTHING}
    inventory = snapshot.inventory
    devices = sum(len(pool) for id_ in inventory.pools() if (pool := inventory.pool(id_)))
    texts = [number_of(devices, "device")]
    texts += [number_of(counts[kind], kind) for kind in ("Node", "Pod", "ResourceClaim")]
    texts += [number_of(n, kind) for kind in ("ManagedCluster", "Placement") if (n := counts[kind])]
    return ", ".join(texts) + f", {number_of(sum(counts.values()), 'object')} in total"
