"""`sully history`: what was tainted, by whom and why, what left, and when it was lifted."""

import argparse
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from sully.cli.client.calling import CommandError, Session, call
from sully.cli.client.durations import seconds
from sully.cli.client.flags import add_client_flags, add_headers_flag, add_snapshot_flag
from sully.cli.client.patterns import fits
from sully.cli.client.subjects import Kinds, named
from sully.cli.client.taking import take
from sully.cli.client.texts import printable
from sully.cli.parsing import meant

if TYPE_CHECKING:
    from sully.client.transport import Kind
    from sully.views.snapshot.snapshot import Gap, Snapshot
    from sully.views.timeline import Happening

    Asked: TypeAlias = Callable[[Snapshot, list[Happening]], Awaitable[list[Happening]]]

_SUBJECTS = ("device", "rule", "pod")
_EPILOG = """\
examples:
  sully history                                      everything that is remembered
  sully history --since 24h -o wide                  of the last day, with devices, who and why
  sully history rule overheated                      one rule: made, changed, evictions, lifted
  sully history device 'gpu.example.com/node-7/*'    what happened to devices
  sully history pod web/probe-0                      why a pod had to leave

Records outlive the rules, the pods and restarts; 'sully up --history-retention' says how long.
Which devices a rule by class or expression was on is told by them as they are now, and by who had
to leave them; 'may include it' stands where that cannot be known.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Tell what taints did, from records that outlive rules and pods."
    parser.epilog = _EPILOG
    parser.add_argument(
        "subject",
        nargs="?",
        default="",
        choices=Kinds(_SUBJECTS),
        metavar="device|rule|pod",
        help="tell only of this; or KIND/NAME in one word, as the table has it",
    )
    parser.add_argument(
        "name",
        nargs="?",
        default="",
        metavar="NAME",
        help="a rule; a pod as NAMESPACE/NAME or NAME; devices as DRIVER/POOL/DEVICE; each may"
        " have globs",
    )
    parser.add_argument(
        "--since", type=seconds, metavar="T", help="only what happened in this time, such as 24h"
    )
    add_client_flags(parser, namespace="only pods of this namespace (default: all)")
    add_headers_flag(parser)
    add_snapshot_flag(parser)


def run(options: argparse.Namespace) -> int:
    """Tell what happened."""
    return call(options, "history", _show)


async def _show(session: Session) -> int:
    from sully.cli.client.documents import show_document
    from sully.cli.client.flags import TABLES
    from sully.cli.client.tables import Table
    from sully.cli.inspect.historyrows import columns, document, row

    found = await _happenings(session)
    output = session.options.output
    if output not in TABLES:
        show_document({"history": [document(each) for each in found]}, output)
    elif found:
        wide = output == "wide"
        table = Table(columns(wide=wide), titled=not session.options.no_headers)
        table.show([row(each, wide=wide) for each in found])
    else:
        session.warn("nothing is remembered of that")
    return 0


async def _happenings(session: Session) -> "list[Happening]":
    from sully.views.kinds import EVICTION_RECORDS, TAINT_RECORDS
    from sully.views.snapshot.kinds import HISTORY
    from sully.views.timeline import happenings

    asked = _subject(session)
    # Rules are in no namespace: who asks about one is not told of them.
    kinds = (EVICTION_RECORDS,) if session.namespace else HISTORY
    found = await take(session, kinds, namespace=session.namespace)
    _refuse_nothing(session, [each for each in map(found.gap, kinds) if each is not None], kinds)
    evictions = found.of(EVICTION_RECORDS).values()
    told = happenings(
        () if session.namespace else found.of(TAINT_RECORDS).values(),
        [each for each in evictions if session.namespace in ("", each.metadata.namespace)],
    )
    told = await asked(found, told)
    since = session.options.since
    begin = found.taken - timedelta(seconds=since) if since is not None else None
    return [each for each in told if begin is None or each.time >= begin]


def _refuse_nothing(session: Session, gaps: "Sequence[Gap]", kinds: "Sequence[Kind[Any]]") -> None:
    """Refuse where there are no records to tell from, and say whose doing that is."""
    if len(gaps) < len(kinds):
        return
    hidden = [each for each in gaps if each.why == "not allowed"]
    if hidden:
        text = f"{printable(hidden[0].message)}\n  ask an admin for a role that allows it"
        raise CommandError(text + ("" if session.namespace else ", or about one namespace: -n NS"))
    where = ", ".join(session.options.snapshot) or session.server
    names = " and no ".join(sorted(each.kind.plural for each in gaps))
    raise CommandError(
        f"{where} keeps no history: it has no {names}\n"
        "  Sully's own server does, unless it runs with --compat reference; to others"
        " 'sully install' brings it"
    )


def _subject(session: Session) -> "Asked":
    """Return what picks out of all that happened what somebody asks for."""
    subject, name = named(session.options.subject, session.options.name)
    if subject and subject not in _SUBJECTS:
        known = ", ".join(_SUBJECTS)
        raise CommandError(
            f"{subject!r} has no history; what has: {known}{meant(subject, _SUBJECTS)}", code=2
        )
    if subject and not name:
        raise CommandError(f"which {subject}? write: sully history {subject} NAME", code=2)
    if subject == "device":
        return _about_devices(session, name)

    def matches(each: "Happening") -> bool:
        if subject == "rule":
            return any(fits(name, one) for one in (each.rule, *_rules(each)) if one)
        return not subject or any(fits(name, one) for one in _pod_names(each))

    async def asked(_: "Snapshot", told: "list[Happening]") -> "list[Happening]":
        return list(filter(matches, told))

    return asked


def _about_devices(session: Session, name: str) -> "Asked":
    from sully.cli.client.patterns import parse_pattern

    pattern = parse_pattern(name)

    async def asked(found: "Snapshot", told: "list[Happening]") -> "list[Happening]":
        from sully.views.kinds import CLASSES, PATCHES, SLICES
        from sully.views.timeline import by_content, concerning

        # All devices are read only where names alone cannot tell; a file was read whole.
        if by_content(told, pattern) and not session.options.snapshot:
            found = await take(session, (SLICES, CLASSES, PATCHES))
        return list(concerning(told, pattern, found.inventory))

    return asked


def _rules(happening: "Happening") -> set[str]:
    return {each.name for each in happening.causes() if each.kind == "DeviceTaintRule"}


def _pod_names(happening: "Happening") -> tuple[str, ...]:
    if happening.eviction is None:
        return ()
    pod = happening.eviction.spec.pod
    return pod.name, f"{pod.namespace}/{pod.name}"
