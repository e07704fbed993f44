"""`sully taint`: marks devices or clusters, after showing what that would do."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sully.cli.acting.plan import NO_PLACE, make_plan, show
from sully.cli.acting.taintflags import add_taint_flags
from sully.cli.acting.tainting import (
    CLUSTER,
    Words,
    cluster_changes,
    marking,
    read_words,
    rule_bodies,
    take_devices,
    take_fleet,
)
from sully.cli.client.calling import CommandError, Session, call
from sully.cli.client.flags import add_client_flags

if TYPE_CHECKING:
    from sully.domain.planning.report import Plan
    from sully.planning.changes import Change

Obj = dict[str, Any]
_EPILOG = """\
examples:
  sully taint device gpu.example.com/node-7/gpu-3 example.com/hot:NoExecute --reason 'fan broken'
  sully taint device --class a100 example.com/firmware=v2:NoExecute --rate 2 --for 2h
  sully taint device 'gpu.example.com/rack1-*/*' example.com/power:NoSchedule
  sully taint device gpu.example.com/node-7/gpu-3 example.com/hot:NoExecute-      remove it
  sully taint cluster eu-2 maintenance:NoSelect
  sully taint cluster eu-2 maintenance-                                           remove it

PATTERN is DRIVER/POOL/DEVICE. A part written * is left out of the rule, so it also holds for
devices to come; a glob such as gpu-* stands for the devices there are, a rule for each.
Before pods are made to leave, the plan is shown and you are asked; --yes answers for scripts.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Set taints on devices or clusters, or remove them."
    parser.epilog = _EPILOG
    parser.add_argument(
        "words",
        nargs="+",
        metavar="device|cluster PATTERN… TAINT",
        help="what to mark, and KEY[=VALUE]:EFFECT; with a dash at the end it is removed",
    )
    add_taint_flags(parser)
    add_action_flags(parser)
    add_client_flags(parser, namespace="")


def add_action_flags(parser: argparse.ArgumentParser) -> None:
    """Describe the flags of commands that ask before they act."""
    parser.add_argument("--dry-run", action="store_true", help="show the plan, and change nothing")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--no-wait", action="store_true", help="do not follow the eviction to its end"
    )


def run(options: argparse.Namespace) -> int:
    """Set or remove taints."""
    return call(options, "taint", _run)


async def _run(session: Session) -> int:
    return await act(session, read_words(session.options.words))


async def act(session: Session, words: Words) -> int:
    """Do what the words say."""
    if words.what == CLUSTER:
        return await _clusters(session, words)
    return await (_lift(session, words) if words.removes else _devices(session, words))


async def _go_on(session: Session, plan: "Plan", *, ask: bool) -> int | None:
    """Show a plan and ask, where that is due; return the exit code if that was all."""
    from sully.cli.acting.asking import confirm

    options = session.options
    if ask or options.dry_run:
        show(plan, options.output)
    if options.dry_run:
        return NO_PLACE if plan.homeless else 0
    if ask and not options.yes and not await confirm(plan):
        print("Nothing was changed.")
        return 1
    return None


# -- devices --------------------------------------------------------------------------------------


async def _devices(session: Session, words: Words) -> int:
    from sully.cli.acting.progress import follow
    from sully.cli.acting.proposals import proposed
    from sully.domain.eviction import EVICTING_WITH_BUDGETS
    from sully.domain.planning.report import Fate

    options = session.options
    snapshot = await take_devices(session)
    marks = marking(session, words, snapshot.taken)
    evicts = marks.taint.effect in EVICTING_WITH_BUDGETS
    bodies = [await _fitting(session, each) for each in rule_bodies(session, snapshot, words)]
    endless = False
    if evicts or options.dry_run:
        plan = make_plan(session, snapshot, await proposed(session, snapshot, bodies))
        done = await _go_on(session, plan, ask=evicts)
        if done is not None:
            return done
        endless = any(each.landing.fate is Fate.RETURNS for each in plan.caused)
    names = [await _write(session, snapshot, body) for body in bodies]
    if endless:
        session.warn("pods come back and leave again, so this has no end to wait for")
    elif evicts and not options.no_wait:
        await follow(session, names, marks.rate)
    return 0


async def _fitting(session: Session, body: Obj) -> Obj:
    """Return a rule as this server can keep it, or refuse by name what it would drop."""
    from sully.domain.planning.rulemaking import lost, with_description_aside, without_rate

    kept = await _tried(session, body)
    dropped = set(lost(body["spec"], kept["spec"]))
    if "taint.description" in dropped:
        dropped.discard("taint.description")
        body = with_description_aside(body)
    if "taint.evictionsPerSecond" in dropped and session.options.rate is None:
        dropped.discard("taint.evictionsPerSecond")
        session.warn("warning: this server knows no pace; all pods leave at once")
        body = without_rate(body)
    if dropped:
        raise CommandError(
            f"{session.server} does not know {', '.join(sorted(dropped))} of a DeviceTaintRule and"
            " would drop it\n  leave out the flag that asks for it"
        )
    return body


async def _tried(session: Session, body: Obj) -> Obj:
    """Return a rule as the server would store it."""
    from sully.client.objects import key_of
    from sully.client.options import WriteOptions
    from sully.machinery.errors import AlreadyExists
    from sully.views.kinds import RULES

    dry, plain = WriteOptions(dry_run=True), RULES.read_as(dict)
    try:
        return await session.transport.create(plain, body, "", dry)
    except AlreadyExists:
        return await session.transport.patch(plain, key_of(body), body, options=dry)


async def _write(session: Session, snapshot: Any, body: Obj) -> str:
    from sully.client.transport import Key
    from sully.views.kinds import RULES

    name = str(body["metadata"]["name"])
    key, plain = Key("", name), RULES.read_as(dict)
    if snapshot.get(RULES, key) is None:
        await session.transport.create(plain, body)
        print(f"devicetaintrule {name} created")
    else:
        await session.transport.patch(plain, key, body)
        print(f"devicetaintrule {name} changed")
    return name


async def _lift(session: Session, words: Words) -> int:
    from sully.cli.acting.lifting import removals
    from sully.views.kinds import RULES

    snapshot = await take_devices(session)
    changes = removals(snapshot, words)
    if session.options.dry_run:
        return await _go_on(session, make_plan(session, snapshot, changes), ask=False) or 0
    for each in changes:
        await session.transport.delete(RULES, each.key)
        print(f"devicetaintrule {each.key} deleted")
    return 0


# -- clusters -------------------------------------------------------------------------------------


async def _clusters(session: Session, words: Words) -> int:
    snapshot = await take_fleet(session)
    changes = cluster_changes(session, snapshot, words)
    ask = not words.removes and _moves_work(words)
    if ask or session.options.dry_run:
        done = await _go_on(session, make_plan(session, snapshot, changes), ask=ask)
        if done is not None:
            return done
    await _write_clusters(session, changes, removes=words.removes)
    return 0


def _moves_work(words: Words) -> bool:
    return any(getattr(each, "effect", "") == "NoSelect" for each in words.taints)


async def _write_clusters(session: Session, changes: "Sequence[Change]", *, removes: bool) -> None:
    from sully.client.objects import to_body
    from sully.planning.changes import Put

    for each in changes:
        if not isinstance(each, Put):
            continue
        wanted = to_body(each.kind, each.obj)["spec"].get("taints", [])
        # The version that was looked at: another writer's taints must not be lost.
        version = each.obj.metadata.resource_version
        patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": wanted}}
        await session.transport.patch(each.kind, each.key, patch)
        print(f"managedcluster {each.key} {'untainted' if removes else 'tainted'}")
