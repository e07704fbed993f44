"""`sully taint`: marks devices or clusters, after showing what that would do."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from sully.cli.acting.plan import NAMESPACE, NO_PLACE, make_plan, show
from sully.cli.acting.taintflags import add_dry_run_flag, add_taint_flags, refuse_useless_flags
from sully.cli.acting.tainting import is_there, rule_bodies, take_devices, take_fleet
from sully.cli.acting.words import CLUSTER, Words, read_words
from sully.cli.client.calling import CommandError, Session, call
from sully.cli.client.flags import TABLES, add_client_flags
from sully.cli.client.patience import patience

if TYPE_CHECKING:
    from sully.domain.planning.report import Plan
    from sully.planning.changes import Put, Remove
    from sully.views.snapshot import Snapshot

Obj = dict[str, Any]
_EPILOG = """\
examples:
  sully taint device gpu.example.com/node-7/gpu-3 example.com/hot:NoExecute --reason 'fan broken'
  sully taint device --class a100 example.com/firmware=v2:NoExecute --rate 2 --for 2h
  sully taint device 'gpu.example.com/rack1-*/*' example.com/power:NoSchedule
  sully taint device gpu.example.com/node-7/gpu-3 example.com/hot:NoExecute-      remove it
  sully taint cluster eu-2 maintenance:NoSelect
  sully taint cluster -l region=eu maintenance-                                   remove it

PATTERN is DRIVER/POOL/DEVICE. A part written * is left out of the rule, so it also holds for
devices to come. A glob such as rack1-* stands for the names there are now: a rule for each, and
one pace for all of them.
Before pods are made to leave, the plan is shown and you are asked; --yes answers for scripts.
With -o json or yaml the plan alone goes to the standard output, and all else to the other.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.usage = "%(prog)s device|cluster PATTERN… KEY[=VALUE]:EFFECT[-]… [flags]"
    parser.description = "Set taints on devices or clusters, or remove them."
    parser.epilog = _EPILOG
    parser.add_argument(
        "words",
        nargs="*",
        metavar="device|cluster PATTERN… TAINT…",
        help="what to mark, and KEY[=VALUE]:EFFECT; with a dash at the end it is removed",
    )
    add_taint_flags(parser)
    add_dry_run_flag(parser)
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--no-wait", action="store_true", help="do not follow the eviction to its end"
    )
    add_client_flags(parser, namespace=NAMESPACE)


def run(options: argparse.Namespace) -> int:
    """Set or remove taints."""
    return call(options, "taint", _run)


async def _run(session: Session) -> int:
    words = read_words(session.options.words)
    refuse_useless_flags(session.options, words)
    return await act(session, words)


async def act(session: Session, words: Words) -> int:
    """Do what the words say."""
    return await (_clusters if words.what == CLUSTER else _devices)(session, words)


def beside(session: Session) -> TextIO:
    """Return where texts go: not between the lines of a document for programs."""
    return sys.stdout if session.options.output in TABLES else sys.stderr


def say(session: Session, text: str) -> None:
    """Tell what was done."""
    print(text, file=beside(session), flush=True)


def _is_dry(session: Session) -> bool:
    return bool(session.options.dry_run != "none")


async def _go_on(session: Session, plan: "Plan", *, ask: bool) -> int | None:
    """Show a plan and ask, where that is due; return the exit code if that was all."""
    from sully.cli.acting.asking import confirm

    show(plan, session.options.output)
    if _is_dry(session):
        return NO_PLACE if plan.homeless else 0
    if ask and not session.options.yes and not await confirm(plan, beside(session)):
        say(session, "Nothing was changed.")
        return 1
    return None


# -- devices --------------------------------------------------------------------------------------


async def _devices(session: Session, words: Words) -> int:
    from sully.cli.acting.lifting import removals

    snapshot = await take_devices(session)
    lifts = removals(session, snapshot, words)
    bodies = await _fitting(session, snapshot, rule_bodies(session, snapshot, words))
    evicts = [each for each in bodies if _evicts(each)]
    plan = None
    if evicts or _is_dry(session) or session.options.output not in TABLES:
        plan = await _planned(session, snapshot, lifts, bodies)
        done = await _go_on(session, plan, ask=bool(evicts))
        if done is not None:
            return done
    for each in lifts:
        await session.transport.delete(each.kind, each.key)
        say(session, f"devicetaintrule {each.key} deleted")
    for body in bodies:
        await _write(session, snapshot, body)
    if plan is not None and evicts:
        await _follow(session, snapshot, plan, evicts)
    return 0


def _evicts(body: Obj) -> bool:
    from sully.domain.eviction import EVICTING_WITH_BUDGETS

    return body["spec"]["taint"]["effect"] in EVICTING_WITH_BUDGETS


async def _planned(
    session: Session, snapshot: "Snapshot", lifts: "Sequence[Remove]", bodies: Sequence[Obj]
) -> "Plan":
    from sully.cli.acting.proposals import proposed

    changes = [*lifts, *await proposed(session, snapshot, bodies)]
    return make_plan(session, snapshot, changes)


async def _follow(
    session: Session, snapshot: "Snapshot", plan: "Plan", bodies: Sequence[Obj]
) -> None:
    from sully.cli.acting.progress import Followed, follow
    from sully.client.transport import Key
    from sully.domain.planning.report import Fate

    if any(each.landing.fate is Fate.RETURNS for each in plan.caused):
        session.warn("pods come back and leave again, so this has no end to wait for")
    elif not session.options.no_wait:
        rate = bodies[0]["spec"]["taint"].get("evictionsPerSecond")
        names = [str(each["metadata"]["name"]) for each in bodies]
        leavers = [Key(each.namespace, each.name) for each in plan.caused]
        known = {key: pod for key in leavers if (pod := snapshot.usage.pod(key)) is not None}
        pods = {key: pod.metadata.uid for key, pod in known.items()}
        await follow(session, Followed(names, rate, plan.ends, pods), beside(session))


async def _fitting(session: Session, snapshot: "Snapshot", bodies: Sequence[Obj]) -> list[Obj]:
    """Return rules as this server can keep them, or refuse by name what it would drop.

    The rules of one taint differ in the devices they name, which every server knows, so one of
    each is tried.
    """
    from sully.domain.planning.rulemaking import lost, with_description_aside, without_rate

    if session.options.dry_run == "client":
        return list(bodies)
    tried: dict[str, set[str]] = {}
    found = []
    for body in bodies:
        kind = str(body["spec"]["taint"])
        if kind not in tried:
            kept = await _tried(session, snapshot, body)
            tried[kind] = set(lost(body["spec"], kept["spec"]))
            _refuse_dropped(session, tried[kind])
        if "taint.description" in tried[kind]:
            body = with_description_aside(body)
        if "taint.evictionsPerSecond" in tried[kind]:
            body = without_rate(body)
        found.append(body)
    return found


def _refuse_dropped(session: Session, dropped: set[str]) -> None:
    """Refuse what a server would drop, except what can be said otherwise or was not asked for."""
    said = {"taint.description"}
    if "taint.evictionsPerSecond" in dropped and session.options.rate is None:
        said.add("taint.evictionsPerSecond")
        session.warn("warning: this server knows no pace; all pods leave at once")
    if dropped - said:
        raise CommandError(
            f"{session.server} does not know {', '.join(sorted(dropped - said))} of a"
            " DeviceTaintRule and would drop it\n  leave out the flag that asks for it"
        )


async def _tried(session: Session, snapshot: "Snapshot", body: Obj) -> Obj:
    """Return a rule as the server would store it."""
    from sully.client.objects import key_of
    from sully.client.options import WriteOptions
    from sully.views.kinds import RULES

    dry, plain, key = WriteOptions(dry_run=True), RULES.read_as(dict), key_of(body)
    if snapshot.get(RULES, key) is None:
        return await session.transport.create(plain, body, "", dry)
    return await session.transport.patch(plain, key, body, options=dry)


async def _write(session: Session, snapshot: "Snapshot", body: Obj) -> None:
    from sully.client.transport import Key
    from sully.machinery.errors import AlreadyExists
    from sully.views.kinds import RULES

    name = str(body["metadata"]["name"])
    key, plain = Key("", name), RULES.read_as(dict)
    known = snapshot.get(RULES, key) is not None
    try:
        with patience(lambda: f"taint: writing devicetaintrule {name}"):
            if known:
                await session.transport.patch(plain, key, body)
            else:
                await session.transport.create(plain, body)
    except AlreadyExists as error:
        # Somebody else was faster than whoever read the plan.
        raise CommandError(is_there(name)) from error
    except asyncio.CancelledError:
        session.warn(
            f"whether devicetaintrule {name} was written is not known: the server had not answered"
            f"\n  to see it:   kubectl get devicetaintrule {name}"
            f"\n  to undo it:  kubectl delete devicetaintrule {name}"
        )
        raise
    say(session, f"devicetaintrule {name} {'changed' if known else 'created'}")


# -- clusters -------------------------------------------------------------------------------------


async def _clusters(session: Session, words: Words) -> int:
    from sully.cli.acting.clusters import cluster_changes

    snapshot = await take_fleet(session)
    changes = cluster_changes(session, snapshot, words)
    ask = any(each.effect == "NoSelect" for each in words.sets)
    if ask or _is_dry(session) or session.options.output not in TABLES:
        done = await _go_on(session, make_plan(session, snapshot, changes), ask=ask)
        if done is not None:
            return done
    await _write_clusters(session, changes, "tainted" if words.sets else "untainted")
    return 0


async def _write_clusters(session: Session, changes: "Sequence[Put]", done: str) -> None:
    from sully.client.objects import to_body

    for each in changes:
        wanted = to_body(each.kind, each.obj)["spec"].get("taints", [])
        # The version that was looked at: another writer's taints must not be lost.
        version = each.obj.metadata.resource_version
        patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": wanted}}
        await session.transport.patch(each.kind, each.key, patch)
        say(session, f"managedcluster {each.key} {done}")
