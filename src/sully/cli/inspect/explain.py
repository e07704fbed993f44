"""`sully explain`: why something is as it is, in sentences, with what would change it."""

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sully.cli.client.calling import CommandError, Session, call
from sully.cli.client.flags import add_client_flags, add_snapshot_flag
from sully.cli.client.subjects import ALIASES, Kinds, named
from sully.cli.client.taking import no_answer, take

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sully.client.transport import Key
    from sully.explain.explanation import Explanation
    from sully.explain.questions import Question
    from sully.explain.reader import Reader
    from sully.views.snapshot.snapshot import Gap, Snapshot

_LISTS = {
    "pod": "kubectl get pods",
    "claim": "kubectl get resourceclaims",
    "device": "sully devices",
    "rule": "kubectl get devicetaintrules",
    "patch": "kubectl get resourceslicepatches",
    "placement": "kubectl get placements",
    "cluster": "kubectl get managedclusters",
}
"""How to see which ones there are."""
_REMEMBERED = ("pod", "device", "rule")
"""What can be explained from records when it is gone, where there are records."""
_INSTEAD = {
    ("deployment", "deploy", "replicaset", "rs", "statefulset", "sts", "daemonset", "ds", "job"): (
        "ask about one of its pods: sully explain pod NAME"
    ),
    ("node", "no"): "its devices: sully devices --node NAME",
    ("slice", "resourceslice"): "its devices: sully devices",
}
"""What to ask instead, by what people ask."""
_EPILOG = """\
examples:
  sully explain pod trainer -n team-a          why it is pending, must leave, or was evicted
  sully explain claim team-a/gpus              who has it, on which devices, and for how long
  sully explain device gpu.example.com/node-7/gpu-3
  sully explain rule fw-update                 whom it makes leave, and when; also of one long gone
  sully explain placement web -n apps --cluster eu-2
  sully explain cluster eu-2 -o json           the same content for programs

The first line has a word for the state and one for the cause; both also stand in JSON and stay the
same. What would help was tried on a copy of the cluster before it is told.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Explain one object: what, since when, because of what, and what helps."
    parser.epilog = _EPILOG
    parser.add_argument(
        "kind",
        choices=Kinds(ALIASES),
        metavar="KIND",
        help=f"{', '.join(ALIASES)}; or KIND/NAME in one word",
    )
    parser.add_argument(
        "name",
        nargs="?",
        default="",
        metavar="NAME",
        help="which one; NAMESPACE/NAME also says where, a device is DRIVER/POOL/DEVICE or its end",
    )
    parser.add_argument(
        "--cluster", default="", metavar="C", help="of a placement: also what it makes of cluster C"
    )
    add_client_flags(
        parser,
        namespace="where it is (default: the namespace of the kubeconfig)",
        outputs=("table", "json", "yaml"),
    )
    add_snapshot_flag(parser)


def run(options: argparse.Namespace) -> int:
    """Explain something."""
    return call(options, "explain", _explain)


async def _explain(session: Session) -> int:
    from sully.explain.facts.devices import AmbiguousNameError
    from sully.explain.questions import QUESTIONS

    kind, name = _asked(session.options.kind, session.options.name)
    if session.options.cluster and kind != "placement":
        raise CommandError(
            "--cluster is for a placement; 'sully explain cluster C' is the other way around",
            code=2,
        )
    question = QUESTIONS[kind]
    key = _key(session, name, namespaced=question.namespaced)
    loaded = await _load(session, question, key)
    try:
        found = _answer(session, loaded, kind, key)
    except AmbiguousNameError as error:
        raise CommandError(f"{error}\n  write DRIVER/POOL/DEVICE") from error
    for note in loaded.notes:
        session.warn(f"warning: {note}")
    if found is None:
        raise CommandError(_unknown(loaded.reader, kind, key))
    if loaded.notes:
        found = replace(found, notes=loaded.notes)
    _show(session, found)
    return 0


def _unknown(reader: "Reader", kind: str, key: "Key") -> str:
    """Say that nobody knows an object, and what may have been meant."""
    from sully.explain.questions import QUESTIONS
    from sully.explain.suggestions import suggest
    from sully.explain.text import join

    text = f'there is no {QUESTIONS[kind].kind} "{key}"'
    if names := suggest(reader, kind, key):
        text += f"\n  did you mean {join(names, 'or')}?"
    where = f" -n {key.namespace}" if key.namespace else ""
    text += f"\n  see: {_LISTS[kind]}{where}"
    if kind in _REMEMBERED and not reader.snapshot.remembers:
        text += "\n  if it is gone, nobody remembers: evictions and rules are not recorded here"
    return text


class _Loaded(NamedTuple):
    """All that a question is answered from, or as much of it as may be seen."""

    reader: "Reader"
    namespace: str
    partly: bool = False
    """Something is hidden that a whole answer needs."""
    notes: tuple[str, ...] = ()


async def _load(session: Session, question: "Question", key: "Key") -> _Loaded:
    from sully.explain.reader import Reader
    from sully.views.snapshot.loading import load

    namespace = key.namespace or session.namespace or session.default_namespace
    if session.options.snapshot:
        found = await take(session, question.reads, needed=question.needs)
        partly = any(gap.but for gap in found.gaps)
        notes = tuple(_lacks(session.options.snapshot, found, question))
        return _Loaded(Reader(found, everything=not partly), namespace, notes=notes)
    now, transport = session.clock.now(), session.transport
    found = await load(transport, question.reads, now=now)
    narrow = any(gap.kind.namespaced for gap in _hidden(found))
    if narrow:
        # Who has a namespace only may still ask about what is in it.
        found = await load(transport, question.reads, now=now, namespace=namespace)
    gaps = [gap for gap in map(found.gap, question.needs) if gap is not None]
    partly = question.find_limited is not None and all(gap.why == "not allowed" for gap in gaps)
    if gaps and not (partly and _sees_something(question, gaps)):
        gap = gaps[0]
        raise no_answer(gap)
    reader = Reader(found, everything=not narrow)
    return _Loaded(reader, namespace, bool(gaps), tuple(_notes(found, namespace if narrow else "")))


def _sees_something(question: "Question", gaps: "list[Gap]") -> bool:
    """Say whether any of the kinds is left that an answer for who sees less is made from."""
    return any(
        kind.namespaced and kind not in [gap.kind for gap in gaps] for kind in question.needs
    )


def _lacks(files: "Sequence[str]", snapshot: "Snapshot", question: "Question") -> "Iterator[str]":
    """Say what files do not have that an answer is made from; of the rest there may be none."""
    from sully.explain.kinds import EXPECTED_KINDS

    matter = [*question.needs, *(each for each in EXPECTED_KINDS if each in question.reads)]
    gaps = [gap for gap in map(snapshot.gap, dict.fromkeys(matter)) if gap is not None]
    where = ", ".join(files)
    if missing := sorted(gap.kind.plural for gap in gaps if not gap.but):
        yield f"{where}: no {', '.join(missing)} in it; the answer takes it that there are none"
    for namespace in sorted({gap.but for gap in gaps if gap.but}):
        yield f"{where}: only namespace {namespace}; what others have and want is not looked at"


def _notes(snapshot: "Snapshot", namespace: str) -> "Iterator[str]":
    if hidden := [gap.kind.plural for gap in _hidden(snapshot)]:
        names = ", ".join(sorted(hidden))
        yield f"you may not list {names}; the answer goes without them"
    if namespace:
        yield f"you may see only namespace {namespace}; what others have and want is not looked at"


def _hidden(snapshot: "Snapshot") -> "list[Gap]":
    return [gap for gap in snapshot.gaps if gap.why == "not allowed"]


def _answer(session: Session, loaded: _Loaded, kind: str, key: "Key") -> "Explanation | None":
    from sully.explain.questions import QUESTIONS, explain_selection

    question, reader, cluster = QUESTIONS[kind], loaded.reader, session.options.cluster
    if loaded.partly:
        return question.answer_limited(reader, key, loaded.namespace)
    if cluster:
        return explain_selection(reader, key, cluster)
    return question.answer(reader, key)


def _asked(kind: str, name: str) -> tuple[str, str]:
    """Return the kind and the name that somebody asks for, in the one form or the other."""
    kind, name = named(kind, name)
    if kind in ALIASES:
        if not name:
            raise CommandError(f"which {kind}? write: sully explain {kind} NAME", code=2)
        return kind, name
    known_kinds = ", ".join(ALIASES)
    text = f"{kind!r} cannot be explained; what can: {known_kinds}"
    for kinds, hint in _INSTEAD.items():
        if kind.lower() in kinds or kind.lower().removesuffix("s") in kinds:
            text += f"\n  {hint}"
    raise CommandError(text, code=2)


def _key(session: Session, name: str, *, namespaced: bool) -> "Key":
    from sully.client.transport import Key

    if not namespaced:
        return Key("", name)
    namespace, slash, rest = name.partition("/")
    if slash:
        if session.namespace not in ("", namespace):
            raise CommandError(
                f"{name} is not in namespace {session.namespace}; leave one of them out", code=2
            )
        return Key(namespace, rest)
    return Key(session.namespace or session.default_namespace, name)


def _show(session: Session, found: "Explanation") -> None:
    from sully.cli.client.documents import show_document

    if session.options.output != "table":
        show_document(found.as_json(), session.options.output)
        return
    from sully.cli.inspect.explaintext import lines

    sys.stdout.writelines(f"{line}\n" for line in lines(found))
    sys.stdout.flush()
