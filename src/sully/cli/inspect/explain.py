"""`sully explain`: why an object is in its state, and what would change it."""

import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from sully.cli.client.options import client_options, snapshot_option
from sully.cli.client.session import Run, Session, call, run_here
from sully.cli.client.snapshots import missing_kind, take_snapshot
from sully.cli.command import CommandError, Options, command
from sully.cli.names import complete_clusters, complete_names, kind_completer
from sully.cli.output.text import did_you_mean
from sully.cli.selection.selectors import ALIASES, named

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
    "node": "kubectl get nodes",
    "deployment": "kubectl get deployments",
    "replicaset": "kubectl get replicasets",
    "statefulset": "kubectl get statefulsets",
    "daemonset": "kubectl get daemonsets",
    "job": "kubectl get jobs",
    "placement": "kubectl get placements",
    "policy": "sully policies",
    "maintenance": "sully maintenance",
    "cluster": "kubectl get managedclusters",
}
"""How to list each kind."""
_RECORDED = ("pod", "device", "rule")
"""What can be explained from records after it is deleted."""
_INSTEAD = {
    ("slice", "resourceslice"): "list its devices: sully devices",
}
"""What to use instead, by kind."""
_HELP = f"""\
Explain the state of an object: since when, because of what, and what would change it.

KIND is one of: {", ".join(ALIASES)}. NAME may be NAMESPACE/NAME; a device is DRIVER/POOL/DEVICE, or
the end of it. KIND/NAME is accepted, too. Several names are explained one after the other.

The first line has the state and its cause; both are also in JSON, and stable.
Remedies were tried on a copy of the cluster before they are suggested.

With several names, JSON and YAML have a list "explanations", and the exit code is 1 if one of the
objects does not exist.
"""
_EXAMPLES = """\
# Explain why a pod is pending, will be evicted, or was evicted
sully explain pod trainer -n team-a

# Explain which devices a claim has, and for how long
sully explain claim team-a/gpus

# Explain a device
sully explain device gpu.example.com/node-7/gpu-3

# Explain two devices
sully explain device node-7/gpu-3 node-7/gpu-4

# Explain which pods a rule evicts, and when; also after it was deleted
sully explain rule fw-update

# Explain why the pods of a Deployment are Pending or evicted
sully explain deployment web -n team-a

# Explain why the devices of a node are not used
sully explain node node-7

# Explain what a device policy does, and what it waits for
sully explain policy gpu-faults

# Explain what a placement decides about a cluster
sully explain placement web -n apps --cluster eu-2

# Explain a cluster, as JSON
sully explain cluster eu-2 -o json
"""


@command("explain", usage="KIND NAME... [flags]", help=_HELP, examples=_EXAMPLES)
@click.argument("kind", metavar="KIND", shell_complete=kind_completer(ALIASES))
@click.argument("names", nargs=-1, metavar="NAME...", shell_complete=complete_names)
@click.option(
    "--cluster",
    default="",
    metavar="NAME",
    shell_complete=complete_clusters,
    help="With a placement: also explain what it decides about this cluster.",
)
@client_options(
    namespace="Namespace of the object (default: the namespace of the kubeconfig).",
    everywhere=False,
    outputs=("table", "json", "yaml"),
)
@snapshot_option
def explain(options: Options) -> int:
    return call(options, "explain", _explain)


async def _explain(session: Session) -> int:
    selected, loads = objects_of(session.options), Loads(session)
    explanations: list[Explanation] = []
    failures: list[CommandError] = []
    for kind, name in selected:
        try:
            explanations.append(await explanation_of(loads, kind, name))
        except CommandError as error:
            failures.append(error)
    for text in loads.notes:
        session.warn(f"warning: {text}")
    if len(selected) == 1:
        if failures:
            raise failures[0]
        _show(session, explanations[0])
        return 0
    _show_all(session, explanations)
    for failure in failures:
        session.warn(f"error: {failure}")
    return max((failure.code for failure in failures), default=0)


class Loads:
    """What explanations are based on; objects of one kind and namespace share it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._loaded: dict[tuple[str, str], _Loaded] = {}

    @property
    def notes(self) -> "list[str]":
        """Return what the explanations do not consider."""
        notes = (text for loaded in self._loaded.values() for text in loaded.notes)
        return list(dict.fromkeys(notes))

    async def load(self, kind: str, question: "Question", key: "Key") -> "_Loaded":
        """Read what is needed to explain an object, once."""
        at = kind, key.namespace
        if at not in self._loaded:
            self._loaded[at] = await _load(self.session, question, key)
        return self._loaded[at]


async def explanation_of(loads: Loads, kind: str, name: str, run: Run = run_here) -> "Explanation":
    """Return the explanation of an object."""
    from sully.explain.facts.devices.devices import AmbiguousNameError
    from sully.explain.questions import QUESTIONS

    session = loads.session
    if session.options.cluster and kind != "placement":
        raise CommandError(
            "--cluster can only be used with a placement; see also 'sully explain cluster NAME'",
            code=2,
        )
    question = QUESTIONS[kind]
    key = _key(session, name, namespaced=question.namespaced)
    loaded = await loads.load(kind, question, key)
    try:
        explanation: Explanation | None = await run(_answer, session, loaded, kind, key)
    except AmbiguousNameError as error:
        raise CommandError(f"{error}\n  use NODE/DEVICE or DRIVER/POOL/DEVICE", code=2) from error
    if explanation is None:
        raise CommandError(await run(_not_found, loaded.reader, kind, key))
    if loaded.notes:
        return replace(explanation, notes=loaded.notes)
    return explanation


def _not_found(reader: "Reader", kind: str, key: "Key") -> str:
    """Return that an object does not exist, with suggestions."""
    from sully.explain.questions import QUESTIONS
    from sully.explain.suggestions import suggest
    from sully.explain.text import join

    text = f'{QUESTIONS[kind].kind.lower()} "{key}" not found'
    if names := suggest(reader, kind, key):
        quoted = [f'"{name}"' for name in names]
        text += f" (did you mean {join(quoted, 'or')}?)"
    where = f" -n {key.namespace}" if key.namespace else ""
    text += f"\n  list them with '{_LISTS[kind]}{where}'"
    if kind in _RECORDED and not reader.snapshot.has_records:
        text += "\n  this server keeps no records of deleted objects and evictions"
    return text


class _Loaded(NamedTuple):
    """All that the explanation is based on, or as much of it as may be listed."""

    reader: "Reader"
    namespace: str
    partly: bool = False
    """A kind may not be listed that a full explanation needs."""
    notes: tuple[str, ...] = ()


async def _load(session: Session, question: "Question", key: "Key") -> _Loaded:
    from sully.explain.reader import Reader
    from sully.views.snapshot.loading import ControlPlaneQuery, load, with_eviction_events

    namespace = key.namespace or session.namespace or session.default_namespace
    if session.options.snapshot:
        snapshot = await take_snapshot(session, question.reads, needed=question.needs)
        partly = any(gap.only_namespace for gap in snapshot.gaps)
        notes = tuple(_missing_kinds(session.options.snapshot, snapshot, question))
        return _Loaded(Reader(snapshot, everything=not partly), namespace, notes=notes)
    transport = session.transport
    acting = ControlPlaneQuery(transport)
    read = partial(load, transport, question.reads, now=session.clock.now(), acting=acting)
    snapshot = await read()
    narrow = False
    if any(gap.kind.namespaced for gap in _hidden(snapshot)):
        # Users with access to one namespace may still explain what is in it.
        inside = await read(namespace=namespace)
        narrow = len(_hidden(inside)) < len(_hidden(snapshot))
        snapshot = inside if narrow else snapshot
    if question.events:
        snapshot = await with_eviction_events(transport, snapshot, namespace if narrow else "")
    gaps = [gap for gap in map(snapshot.gap, question.needs) if gap is not None]
    partly = question.find_limited is not None and all(gap.reason == "not allowed" for gap in gaps)
    if gaps and not (partly and _sees_something(question, gaps)):
        raise missing_kind(gaps[0])
    reader = Reader(snapshot, everything=not narrow)
    return _Loaded(
        reader, namespace, bool(gaps), tuple(_notes(snapshot, namespace if narrow else ""))
    )


def _sees_something(question: "Question", gaps: "list[Gap]") -> bool:
    """Report whether any kind is left for a partial explanation."""
    return any(
        kind.namespaced and kind not in [gap.kind for gap in gaps] for kind in question.needs
    )


def _missing_kinds(
    files: "Sequence[str]", snapshot: "Snapshot", question: "Question"
) -> "Iterator[str]":
    """Yield what is missing in files; of other kinds there may be no objects."""
    from sully.explain.kinds import EXPECTED_KINDS

    kinds = [*question.needs, *(kind for kind in EXPECTED_KINDS if kind in question.reads)]
    gaps = [gap for gap in map(snapshot.gap, dict.fromkeys(kinds)) if gap is not None]
    where = ", ".join(files)
    if missing := sorted(gap.kind.plural for gap in gaps if not gap.only_namespace):
        yield f"{where}: no {', '.join(missing)} found; assuming that there are none"
    for namespace in sorted({gap.only_namespace for gap in gaps if gap.only_namespace}):
        yield f"{where}: only namespace {namespace}; other namespaces are not considered"


def _notes(snapshot: "Snapshot", namespace: str) -> "Iterator[str]":
    if hidden := [gap.kind.plural for gap in _hidden(snapshot)]:
        names = ", ".join(sorted(hidden))
        yield f"not allowed to list {names}; the output does not consider them"
    if namespace:
        yield f"only namespace {namespace} may be listed; other namespaces are not considered"


def _hidden(snapshot: "Snapshot") -> "list[Gap]":
    return [gap for gap in snapshot.gaps if gap.reason == "not allowed"]


def _answer(session: Session, loaded: _Loaded, kind: str, key: "Key") -> "Explanation | None":
    from sully.explain.questions import QUESTIONS, explain_selection

    question, reader, cluster = QUESTIONS[kind], loaded.reader, session.options.cluster
    if loaded.partly:
        return question.answer_limited(reader, key, loaded.namespace)
    if cluster:
        return explain_selection(reader, key, cluster)
    return question.answer(reader, key)


def objects_of(options: Options) -> list[tuple[str, str]]:
    """Return kinds and names, from KIND NAME... or KIND/NAME..."""
    first, names = options.kind, options.names
    if "/" in first:
        return list(dict.fromkeys(_known(*named(word)) for word in (first, *names)))
    kind, _ = _known(*named(first))
    if not names:
        raise CommandError("missing argument: NAME", code=2)
    return list(dict.fromkeys((kind, name) for name in names))


def _known(kind: str, name: str) -> tuple[str, str]:
    """Return kind and name; refuse an unknown kind."""
    if kind in ALIASES:
        return kind, name
    hint = did_you_mean(kind, ALIASES)
    text = f'unknown value "{kind}" (one of: {", ".join(ALIASES)}){hint}'
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
                f"{name} is not in namespace {session.namespace}; omit one of them", code=2
            )
        return Key(namespace, rest)
    return Key(session.namespace or session.default_namespace, name)


def _show(session: Session, explanation: "Explanation") -> None:
    from sully.cli.output.printers import print_document

    if session.options.output != "table":
        print_document(explanation.as_json(), session.options.output)
        return
    _print([explanation])


def _show_all(session: Session, explanations: "Sequence[Explanation]") -> None:
    from sully.cli.output.printers import print_document

    if session.options.output != "table":
        documents = {"explanations": [explanation.as_json() for explanation in explanations]}
        print_document(documents, session.options.output)
        return
    _print(explanations)


def _print(explanations: "Sequence[Explanation]") -> None:
    from sully.cli.inspect.explain_printer import lines

    for number, explanation in enumerate(explanations):
        if number:
            print()
        sys.stdout.writelines(f"{line}\n" for line in lines(explanation))
    sys.stdout.flush()
