"""`sully history`: past taints and evictions, from records."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from sully.cli.client.options import (
    TABLES,
    client_options,
    duration_option,
    no_headers_option,
    snapshot_option,
    watch_option,
)
from sully.cli.client.session import Run, Session, call, run_here
from sully.cli.client.snapshots import take_snapshot
from sully.cli.command import CommandError, Options, command
from sully.cli.inspect.history.missing import missing_text, no_records_text
from sully.cli.names import complete_names, kind_completer
from sully.cli.output.text import did_you_mean, printable
from sully.cli.selection.globs import glob_matches
from sully.cli.selection.selectors import Pattern, Patterns, named, parse_pattern

if TYPE_CHECKING:
    from sully.client.transport import Kind
    from sully.views.history import DeviceFilter, HistoryEntry
    from sully.views.snapshot.snapshot import Gap, Snapshot

    Select: TypeAlias = Callable[[Snapshot, list[HistoryEntry], Run], Awaitable[list[HistoryEntry]]]

_UNRECORDED = (
    "note: evictions by 'sully drain' and by maintenances are not recorded; the audit log has them"
)
_SUBJECTS = ("device", "rule", "pod", "node", "cluster")
_HELP = """\
List past taints and evictions: which rules were created, changed and deleted, by whom, which pods
were evicted, and which clusters were tainted and untainted.

KIND is device, rule, pod, node or cluster. NAME is a rule, a cluster, a pod as NAMESPACE/NAME or
NAME, or devices as DRIVER/POOL/DEVICE, each with globs, or a node: its devices, and the pods that
ran there. A device can be named as for 'sully taint', for example by NODE/DEVICE or UUID.
KIND/NAME is accepted, too. A name that matches nothing that exists or was recorded is an error.

Pods that 'sully drain' or a maintenance evicts have no record: they are evicted through the
Eviction API, whose calls are in the audit log. A drain also creates an Event on each pod.

Records outlive rules, pods and restarts; 'sully up --history-retention' sets for how long. The
devices of a rule with a class or an expression are evaluated against the devices of today and the
evicted pods; "may include it" marks where that is not certain. The last 50 changes of the taints of
a cluster are kept with the cluster; on hubs other than Sully's server, only those of 'sully taint'.
"""
_EXAMPLES = """\
# List all records
sully history

# List the last day, with devices, users and reasons
sully history --since 24h -o wide

# List what happened to a rule, to devices, to a pod
sully history rule overheated
sully history device node-7/gpu-3
sully history device 'gpu.example.com/node-7/*'
sully history pod web/probe-0
sully history node node-7
sully history cluster eu-2

# List all records, then watch for new ones
sully history --watch
"""


@command("history", usage="[KIND NAME] [flags]", help=_HELP, examples=_EXAMPLES)
@click.argument("subject", default="", metavar="[KIND]", shell_complete=kind_completer(_SUBJECTS))
@click.argument("name", default="", metavar="[NAME]", shell_complete=complete_names)
@duration_option("--since", help="Only what is newer than this.")
@watch_option
@client_options(namespace="If present, only pods in this namespace.")
@no_headers_option
@snapshot_option
def history(options: Options) -> int:
    return call(options, "history", _watch if options.watch else _show)


async def _show(session: Session) -> int:
    from sully.cli.inspect.history.printer import columns, document, row
    from sully.cli.output.printers import print_document
    from sully.cli.output.tables import Table

    kinds = kinds_for(session)
    snapshot = await take_snapshot(session, kinds, namespace=session.namespace)
    refuse_missing_records(session, snapshot.gap, kinds)
    records = await _selected(session, snapshot)
    entries = _recent(session, snapshot, records)
    missing = "" if any(not x.uncertain for x in records) else await missing_text(session)
    output = session.options.output
    if output not in TABLES:
        documents = {"history": [document(entry) for entry in entries]}
        titled = not session.options.no_headers
        print_document(documents, output, ("history",), titled=titled)
    elif entries:
        wide = output == "wide"
        table = Table(columns(wide=wide), titled=not session.options.no_headers)
        table.show([row(entry, wide=wide) for entry in entries])
    elif not missing:
        session.warn(no_records_text(session))
    if missing and records:
        # A device that is gone may have had a class or attributes that a rule selected.
        session.warn(f"warning: {missing}; these records may be about other devices")
    elif missing:
        session.warn(f"error: {missing}\n  no records of it either; list all with 'sully history'")
    if output in TABLES and _may_lack_evictions(session, entries):
        session.warn(_UNRECORDED)
    return 1 if missing and not records else 0


def _may_lack_evictions(session: Session, entries: "Sequence[HistoryEntry]") -> bool:
    """Report whether pods may have been evicted that have no record: through the Eviction API."""
    from sully.domain.drain import rules as drains
    from sully.domain.maintenance import rules as maintenances

    subject = named(session.options.subject, session.options.name)[0]
    if not entries:
        return subject not in ("cluster", "rule")
    keys = {entry.taint.key for entry in entries if entry.taint is not None}
    return not keys.isdisjoint((drains.KEY, maintenances.KEY))


def kinds_for(session: Session) -> "tuple[Kind[Any], ...]":
    """Return the kinds of records; rules are cluster-scoped, and not listed for a namespace."""
    from sully.views.fleet_kinds import CLUSTERS
    from sully.views.kinds import EVICTION_RECORDS
    from sully.views.snapshot.kinds import HISTORY

    if named(session.options.subject)[0] == "cluster":
        return (CLUSTERS,)
    return (EVICTION_RECORDS,) if session.namespace else (*HISTORY, CLUSTERS)


async def entries_in(
    session: Session, snapshot: "Snapshot", run: Run = run_here
) -> "list[HistoryEntry]":
    """Return the entries that the command line selects, the oldest first."""
    return _recent(session, snapshot, await _selected(session, snapshot, run))


async def _selected(
    session: Session, snapshot: "Snapshot", run: Run = run_here
) -> "list[HistoryEntry]":
    """Return the entries of KIND and NAME, also those that are older than --since."""
    from sully.views.fleet_kinds import CLUSTERS
    from sully.views.history import history_entries
    from sully.views.kinds import EVICTION_RECORDS, TAINT_RECORDS

    select = _selection(session)
    evictions = snapshot.of(EVICTION_RECORDS).values()
    listed = partial(
        history_entries,
        () if session.namespace else snapshot.of(TAINT_RECORDS).values(),
        [x for x in evictions if session.namespace in ("", x.metadata.namespace)],
        () if session.namespace else snapshot.of(CLUSTERS).values(),
        complete=snapshot.records_evictions,
    )
    return await select(snapshot, await run(listed), run)


def _recent(
    session: Session, snapshot: "Snapshot", records: "list[HistoryEntry]"
) -> "list[HistoryEntry]":
    since = session.options.since
    begin = snapshot.taken - timedelta(seconds=since) if since is not None else None
    return [record for record in records if begin is None or record.time >= begin]


def refuse_missing_records(
    session: Session, gap: "Callable[[Kind[Any]], Gap | None]", kinds: "Sequence[Kind[Any]]"
) -> None:
    """Fail where there are no records, and report why; on a hub, those of clusters remain."""
    from sully.views.fleet_kinds import CLUSTERS

    needed = [kind for kind in kinds if kind != CLUSTERS] or kinds
    gaps = [missing for kind in needed if (missing := gap(kind)) is not None]
    if len(gaps) < len(needed):
        return
    hidden = [gap for gap in gaps if gap.reason == "not allowed"]
    if hidden:
        text = f"{printable(hidden[0].message)}\n  ask an administrator for a role that allows this"
        raise CommandError(text + ("" if session.namespace else ", or use -n NAMESPACE"))
    where = ", ".join(session.options.snapshot) or session.server
    names = " and no ".join(sorted(gap.kind.plural for gap in gaps))
    advice = (
        "  Sully's server does, unless it runs with --compat reference;"
        " use 'sully install' for others"
    )
    if not session.options.subject and CLUSTERS in kinds and gap(CLUSTERS) is None:
        text = f"warning: {where} keeps no history of devices: it has no {names}"
        session.warn(f"{text}\n{advice}")
        return
    raise CommandError(f"{where} keeps no history: it has no {names}\n{advice}")


def _selection(session: Session) -> "Select":
    """Return what selects the records of KIND and NAME."""
    subject, name = named(session.options.subject, session.options.name)
    if subject and subject not in _SUBJECTS:
        known = ", ".join(_SUBJECTS)
        raise CommandError(
            f'unknown value "{subject}" (one of: {known}){did_you_mean(subject, _SUBJECTS)}', code=2
        )
    if subject and not name:
        raise CommandError("missing argument: NAME", code=2)
    if subject == "device":
        return _about_devices(session, name)
    if subject == "node":
        return _about_node(session, name)

    def matches(entry: "HistoryEntry") -> bool:
        if subject == "cluster":
            return bool(entry.cluster) and glob_matches(name, entry.cluster)
        if subject == "rule":
            return any(glob_matches(name, rule) for rule in (entry.rule, *_rules(entry)) if rule)
        return not subject or any(glob_matches(name, pod) for pod in _pod_names(entry))

    async def select(
        _: "Snapshot", records: "list[HistoryEntry]", run: Run
    ) -> "list[HistoryEntry]":
        entries: list[HistoryEntry] = await run(lambda: list(filter(matches, records)))
        return entries

    return select


def _about_devices(session: Session, name: str) -> "Select":

    pattern = parse_pattern(name)
    is_full = name.count("/") >= 2

    def about(snapshot: "Snapshot", records: "list[HistoryEntry]") -> "list[HistoryEntry]":
        from sully.views.history import entries_about

        devices = pattern if is_full else _named(snapshot, name)
        return list(entries_about(records, devices, snapshot.inventory))

    async def select(
        snapshot: "Snapshot", records: "list[HistoryEntry]", run: Run
    ) -> "list[HistoryEntry]":
        from sully.views.history import needs_inventory
        from sully.views.kinds import CLASSES, PATCHES, SLICES

        # Devices are listed only where names are not enough; a file was read whole.
        needed = not is_full or needs_inventory(records, pattern)
        if needed and not session.options.snapshot:
            snapshot = await take_snapshot(session, (SLICES, CLASSES, PATCHES))
        entries: list[HistoryEntry] = await run(about, snapshot, records)
        return entries

    return select


def _named(snapshot: "Snapshot", name: str) -> "DeviceFilter":
    """Return the devices of a short name, also of one that is not published any more."""
    from sully.cli.selection.device_names import DeviceNames, MissingNameError

    names, pattern = DeviceNames(snapshot), parse_pattern(name)
    if names.matching(pattern):
        return pattern
    try:
        return Patterns(tuple(Pattern(*device) for device in names.find(name).devices))
    except MissingNameError:
        pool, _, device = name.rpartition("/")
        if not pool or any(known.driver == pool for known in names.nodes):
            return pattern
        return Patterns((pattern, Pattern(pool=pool, device=device)))


def _about_node(session: Session, name: str) -> "Select":

    def about(snapshot: "Snapshot", records: "list[HistoryEntry]") -> "list[HistoryEntry]":
        from sully.views.devices.device_views import node_of
        from sully.views.history import entries_about_node

        inventory = snapshot.inventory
        devices = [
            Pattern(*device.id)
            for pool in sorted(inventory.pools_for(name))
            for device in inventory.devices(pool).values()
            if node_of(device.published) == name
        ]
        # Most drivers name the pool of a node that is gone like the node.
        filter_ = Patterns(tuple(devices) or (Pattern(pool=name),))
        return entries_about_node(records, name, filter_, inventory)

    async def select(
        snapshot: "Snapshot", records: "list[HistoryEntry]", run: Run
    ) -> "list[HistoryEntry]":
        from sully.views.kinds import CLASSES, PATCHES, SLICES

        if not session.options.snapshot:
            snapshot = await take_snapshot(session, (SLICES, CLASSES, PATCHES))
        entries: list[HistoryEntry] = await run(about, snapshot, records)
        return entries

    return select


async def _watch(session: Session) -> int:
    from sully.cli.inspect.history.watch import watch

    return await watch(session)


def _rules(entry: "HistoryEntry") -> set[str]:
    return {cause.name for cause in entry.causes() if cause.kind == "DeviceTaintRule"}


def _pod_names(entry: "HistoryEntry") -> tuple[str, ...]:
    if entry.eviction is None:
        return ()
    pod = entry.eviction.spec.pod
    return pod.name, f"{pod.namespace}/{pod.name}"
