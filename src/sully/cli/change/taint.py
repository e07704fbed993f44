"""`sully taint`: marks devices or clusters, after showing what that would do."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sully.cli.change.plan import NAMESPACE, make_plan
from sully.cli.change.taintflags import add_dry_run_flag, add_taint_flags, refuse_useless_flags
from sully.cli.change.tainting import own_label, rule_bodies, take_devices, take_fleet
from sully.cli.change.telling import beside, for_programs, go_on, is_dry, say, show_objects
from sully.cli.change.words import CLUSTER, Words, read_words
from sully.cli.client.calling import CommandError, Session, call
from sully.cli.client.flags import NAMES, OUTPUTS, add_client_flags

if TYPE_CHECKING:
    from sully.cli.change.progress import Followed
    from sully.domain.planning.report import Plan
    from sully.planning.changes import Put, Remove
    from sully.views.snapshot.snapshot import Snapshot

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
With -o json, yaml or name the objects alone go to the standard output, as kubectl prints them,
and all else to the other. With --dry-run they are those that would be written, so that
'--dry-run -o yaml | kubectl apply -f -' does the same; 'sully plan -o json' has the plan.

exit codes: 0 done, 1 failed, or pods that were to leave did not, because somebody lifted or changed
the rule, 2 wrong usage, 3 something would find no place (--dry-run)
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
    add_client_flags(parser, namespace=NAMESPACE, outputs=(*OUTPUTS, NAMES))


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


# -- devices --------------------------------------------------------------------------------------


async def _devices(session: Session, words: Words) -> int:
    from sully.cli.change.lifting import removals
    from sully.cli.change.manifests import Manifest
    from sully.cli.change.proposals import proposed
    from sully.cli.change.writing import lift_rules, write_rules

    ask = any(_evicts(each.effect) for each in words.sets)
    snapshot = await take_devices(session, planned=ask or is_dry(session))
    lifts = removals(session, snapshot, words)
    bodies = await as_kept(session, snapshot, rule_bodies(session, snapshot, words))
    going = await _as_they_are(session, lifts if not bodies else ())
    plan = None
    if ask or is_dry(session):
        changes = [*lifts, *await proposed(session, snapshot, map(Manifest, bodies))]
        plan = make_plan(session, snapshot, changes)
        done = await go_on(session, plan, ask=ask)
        if is_dry(session):
            show_objects(session, await _would_be(session, snapshot, bodies) or going)
        if done is not None:
            return done
    await lift_rules(session, lifts)
    written = await write_rules(session, snapshot, bodies)
    show_objects(session, written or going)
    evicts = [each for each in bodies if _evicts(each["spec"]["taint"]["effect"])]
    if plan is None or not evicts:
        return 0
    return 0 if await _follow(session, snapshot, plan, evicts) else 1


def _evicts(effect: str) -> bool:
    from sully.domain.eviction.judge import EVICTING_WITH_BUDGETS

    return effect in EVICTING_WITH_BUDGETS


async def _would_be(session: Session, snapshot: "Snapshot", bodies: Sequence[Obj]) -> list[Obj]:
    """Return rules for programs as they would be stored, or be sent if no server was asked."""
    if not for_programs(session):
        return []
    if session.options.dry_run == "client":
        return list(bodies)
    return [await _tried(session, snapshot, each) for each in bodies]


async def _as_they_are(session: Session, lifts: "Sequence[Remove]") -> list[Obj]:
    """Return rules that go, for programs."""
    if not for_programs(session):
        return []
    return [await session.transport.get(each.kind.read_as(dict), each.key) for each in lifts]


async def _follow(
    session: Session, snapshot: "Snapshot", plan: "Plan", bodies: Sequence[Obj]
) -> bool:
    """Show how pods leave, if that is wanted; say whether all left that were to."""
    from sully.cli.change.progress import follow
    from sully.domain.planning.report import Fate

    if any(each.landing.fate is Fate.RETURNS for each in plan.caused):
        session.warn("pods come back and leave again, so this has no end to wait for")
        return True
    if session.options.no_wait:
        return True
    return await follow(session, _followed(session, snapshot, plan, bodies), beside(session))


def _followed(
    session: Session, snapshot: "Snapshot", plan: "Plan", bodies: Sequence[Obj]
) -> "Followed":
    from sully.cli.change.progress import Followed, state_of
    from sully.client.transport import Key
    from sully.views.kinds import CLAIMS, PODS, RULES

    names = [str(each["metadata"]["name"]) for each in bodies]
    there = [snapshot.get(RULES, Key("", each)) for each in names]
    leavers = [Key(each.namespace, each.name) for each in plan.caused]
    known = {key: pod for key in leavers if (pod := snapshot.usage.pod(key)) is not None}
    all_seen = snapshot.gap(PODS) is None and snapshot.gap(CLAIMS) is None
    return Followed(
        names,
        rate=bodies[0]["spec"]["taint"].get("evictionsPerSecond"),
        ends=plan.ends,
        pods={key: pod.metadata.uid for key, pod in known.items()},
        group=own_label(snapshot, bodies),
        before=state_of([each for each in there if each is not None]).evicted,
        expires=session.options.lasts is not None and all_seen,
    )


async def as_kept(session: Session, snapshot: "Snapshot", bodies: Sequence[Obj]) -> list[Obj]:
    """Return rules as this server can keep them, or refuse by name what it would drop.

    The rules of one taint differ in the devices they name, which every server knows, so one of
    each is tried.
    """
    from sully.domain.planning.rulemaking import lost, with_description_aside, without_rate

    if getattr(session.options, "dry_run", "") == "client":
        return list(bodies)
    await _warn_of_no_end(session, bodies)
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


async def _warn_of_no_end(session: Session, bodies: Sequence[Obj]) -> None:
    """Say that a rule may stay for ever that was to end: a server keeps the time, and no more."""
    from sully.cli.client.evictor import sully_ends_rules_at

    if bodies and session.options.lasts is not None and not await sully_ends_rules_at(session):
        session.warn(
            f"warning: {session.server} ends no rules by itself\n"
            "  unless 'sully controllers' run there, it stays until somebody deletes it"
        )


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


# -- clusters -------------------------------------------------------------------------------------


async def _clusters(session: Session, words: Words) -> int:
    from sully.cli.change.clusters import cluster_changes

    ask = any(each.effect == "NoSelect" for each in words.sets)
    snapshot = await take_fleet(session, planned=ask or is_dry(session))
    changes = cluster_changes(session, snapshot, words)
    if ask or is_dry(session):
        if session.options.dry_run != "client":
            # All get the same taints, so what the server thinks of one holds for the others.
            await _write_cluster(session, changes[0], dry=True)
        done = await go_on(session, make_plan(session, snapshot, changes), ask=ask)
        if is_dry(session):
            show_objects(session, await _would_be_clusters(session, changes))
        if done is not None:
            return done
    if len(changes) > 1:
        # Else placements would move from the first to clusters that are tainted a moment later.
        changes = [await _gently(session, snapshot, each, words) for each in changes]
    written = []
    for each in changes:
        written.append(await _write_cluster(session, each))
        say(session, f"managedcluster {each.key} {'tainted' if words.sets else 'untainted'}")
    show_objects(session, written)
    return 0


async def _gently(session: Session, snapshot: "Snapshot", change: "Put", words: Words) -> "Put":
    """Keep new decisions off a cluster that is to lose those it has; return what is left to do."""
    from msgspec.structs import replace

    from sully.cli.change.clusters import gentler
    from sully.planning.changes import Put

    before = snapshot.get(change.kind, change.key)
    softly = gentler(before, change.obj, words) if before is not None else change.obj
    if softly is change.obj:
        return change
    made = await _write_cluster(session, Put(change.kind, softly))
    version = made["metadata"]["resourceVersion"]
    metadata = replace(change.obj.metadata, resource_version=version)
    return Put(change.kind, replace(change.obj, metadata=metadata))


async def _would_be_clusters(session: Session, changes: "Sequence[Put]") -> list[Obj]:
    """Return clusters for programs as they would be."""
    if not for_programs(session):
        return []
    if session.options.dry_run != "client":
        return [await _write_cluster(session, each, dry=True) for each in changes]
    found = []
    for each in changes:
        known = await session.transport.get(each.kind.read_as(dict), each.key)
        found.append({**known, "spec": {**known["spec"], "taints": _taints(each)}})
    return found


async def _write_cluster(session: Session, change: "Put", *, dry: bool = False) -> Obj:
    """Write the taints of a cluster, and return it as the server has it then."""
    from sully.client.options import WriteOptions

    # The version that was looked at: another writer's taints must not be lost.
    version = change.obj.metadata.resource_version
    patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": _taints(change)}}
    plain, options = change.kind.read_as(dict), WriteOptions(dry_run=dry)
    return await session.transport.patch(plain, change.key, patch, options=options)


def _taints(change: "Put") -> Any:
    """Return the taints of a cluster as people write them: their times have whole seconds."""
    from sully.machinery.codec import from_json, to_json

    return from_json(to_json(change.obj.spec.taints))
