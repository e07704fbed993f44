"""`sully explain`: why something is as it is, in sentences, with what would change it."""

import argparse
import sys
from typing import TYPE_CHECKING

from sully.cli.client.calling import CommandError, Session, call, take
from sully.cli.client.flags import add_client_flags, add_snapshot_flag

if TYPE_CHECKING:
    from sully.client.transport import Key
    from sully.domain.explaining.story import Explanation
    from sully.explaining.answers import Question
    from sully.explaining.world import World
    from sully.views.snapshot import Gap, Snapshot

ALIASES = {
    "pod": ("po", "pods"),
    "claim": ("claims", "resourceclaim", "resourceclaims"),
    "device": ("dev", "devices"),
    "rule": ("rules", "devicetaintrule", "devicetaintrules"),
    "patch": ("patches", "resourceslicepatch", "resourceslicepatches"),
    "placement": ("placements",),
    "cluster": ("clusters", "managedcluster", "managedclusters", "mcl"),
}
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


class _Kinds(tuple[str, ...]):
    """What shells offer for KIND; what else may stand there, KIND/NAME, is read by `_asked`."""

    __slots__ = ()

    def __contains__(self, word: object) -> bool:
        return True


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Explain one object: what, since when, because of what, and what helps."
    parser.epilog = _EPILOG
    parser.add_argument(
        "kind",
        choices=_Kinds(ALIASES),
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
    from sully.explaining.answers import QUESTIONS
    from sully.explaining.devices import AmbiguousError

    kind, name = _asked(session.options.kind, session.options.name)
    question = QUESTIONS[kind]
    key = _key(session, name, namespaced=question.namespaced)
    world = await _world(session, question, key)
    try:
        found = _answer(session, world, kind, key)
    except AmbiguousError as error:
        raise CommandError(f"{error}\n  write DRIVER/POOL/DEVICE") from error
    if found is None:
        raise CommandError(f'there is no {question.kind} "{key}"\n  see: {_LISTS[kind]}')
    _show(session, found)
    return 0


async def _world(session: Session, question: "Question", key: "Key") -> "World":
    """Return all that a question is answered from, or as much of it as may be seen."""
    from sully.explaining.world import World
    from sully.views.loading import load

    if session.options.snapshot:
        return World(await take(session, question.reads, needed=question.needs))
    now, transport = session.clock.now(), session.transport
    found = await load(transport, question.reads, now=now)
    narrow = question.namespaced and any(gap.kind.namespaced for gap in _hidden(found))
    if narrow:
        # Who has a namespace only may still ask about what is in it.
        found = await load(transport, question.reads, now=now, namespace=key.namespace)
    for kind in question.needs:
        if gap := found.gap(kind):
            raise CommandError(f"{gap.message}\n  without {kind.plural} there is no answer")
    if hidden := [gap.kind.plural for gap in _hidden(found)]:
        names = ", ".join(sorted(hidden))
        session.warn(f"warning: you may not list {names}; the answer goes without them")
    return World(found, everything=not narrow)


def _hidden(snapshot: "Snapshot") -> "list[Gap]":
    return [gap for gap in snapshot.gaps if gap.why == "not allowed"]


def _answer(session: Session, world: "World", kind: str, key: "Key") -> "Explanation | None":
    from sully.explaining import fleet
    from sully.explaining.answers import QUESTIONS

    about = session.options.cluster
    if kind == "placement" and about:
        return fleet.placement(world.hub, key, about)
    return QUESTIONS[kind].answer(world, key)


def _asked(kind: str, name: str) -> tuple[str, str]:
    """Return the kind and the name that somebody asks for, in the one form or the other."""
    if not name:
        kind, _, name = kind.partition("/")
    for known, others in ALIASES.items():
        if kind.lower() in (known, *others):
            if not name:
                raise CommandError(f"which {known}? write: sully explain {known} NAME", code=2)
            return known, name
    known_kinds = ", ".join(ALIASES)
    raise CommandError(f"{kind!r} cannot be explained; what can: {known_kinds}", code=2)


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
    from sully.cli.seeing.explaintext import lines

    sys.stdout.writelines(f"{line}\n" for line in lines(found))
    sys.stdout.flush()
