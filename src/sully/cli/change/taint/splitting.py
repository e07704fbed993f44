"""`untaint` and `uncordon` of a part of what a rule taints: rules for the others replace it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sully.cli.change.confirm import Question
from sully.cli.change.output import confirmed, is_dry_run, print_objects, report, text_stream
from sully.cli.change.plan.simulation import make_plan
from sully.cli.change.taint.args import TaintArgs
from sully.cli.change.taint.removals import other_sources, removal_of, warn_of_creators
from sully.cli.change.taint.rules import take_devices
from sully.cli.change.taint.writes import delete_rules
from sully.cli.client.session import Session
from sully.cli.client.snapshots import take_snapshot
from sully.cli.command import CommandError
from sully.cli.output.formatting import rule_name
from sully.cli.output.text import did_you_mean
from sully.cli.selection.files import files_hint
from sully.cli.selection.selectors import rule_named
from sully.client.objects import from_body, to_body
from sully.client.transport import Key
from sully.domain.devices.rules import TOGETHER
from sully.domain.planning.rules.selectors import selectors_for
from sully.machinery.formats.plurals import number_of
from sully.planning.dryrun.changes import Put, Remove
from sully.planning.simulation.cluster_copy import PLAN_KINDS
from sully.views.devices.device_views import node_of
from sully.views.devices.name_index import names_in
from sully.views.kinds import RULES, SLICES

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule
    from sully.domain.devices.pools import DeviceId
    from sully.domain.planning.rules.taint_removal import DeviceMatcher
    from sully.planning.dryrun.changes import Remove
    from sully.views.snapshot.snapshot import Snapshot

Obj = dict[str, Any]


async def split_and_remove(session: Session, args: TaintArgs) -> int:
    """Remove taints from devices; other devices of the same rules keep theirs."""

    snapshot = await take_devices(session, args)
    bodies: dict[str, list[Obj]] = {}
    deleted: dict[str, None] = {}
    for taint in args.removes:
        removal, selects = removal_of(snapshot, args.selection(session.options), taint)
        if text := other_sources(removal):
            raise CommandError(text)
        deleted |= dict.fromkeys(rule.metadata.name for rule in removal.rules)
        for name in (remaining.origin.name for remaining in removal.remaining):
            rule = snapshot.get(RULES, Key("", name))
            if rule is not None:
                bodies[name] = split(snapshot, rule, selects)
    return await replace_rules(session, snapshot, tuple(deleted), bodies)


def _action(deletions: "Sequence[Remove]", created: Sequence[Obj]) -> str:
    """Return what will happen, for the question."""
    rules = f"rule {deletions[0].key.name}" if len(deletions) == 1 else f"{len(deletions)} rules"
    return f"Replace {rules} by {number_of(len(created), 'rule')}" if created else f"Delete {rules}"


async def replace_rules(
    session: Session, snapshot: "Snapshot", deleted: Sequence[str], bodies: dict[str, list[Obj]]
) -> int:
    """Delete rules, and replace others by those of `bodies`, after confirmation."""

    deletions = [Remove(RULES, Key("", name)) for name in (*deleted, *bodies)]
    created = [body for bodies_ in bodies.values() for body in bodies_]
    _explain(session, bodies)
    puts = [Put(RULES, _typed(body)) for body in created]
    plan = make_plan(session, snapshot, [*puts, *deletions])
    done = await confirmed(session, plan, Question(_action(deletions, created)), ask=True)
    if done is not None:
        print_objects(session, created if is_dry_run(session) else ())
        return done
    written = []
    for body in created:
        # First: the other devices are never without their taint.
        written.append(await session.transport.create(RULES.read_as(dict), body))
        report(session, f"{rule_name(body['metadata']['name'])} created")
    await delete_rules(session, deletions)
    print_objects(session, written)
    return 0


def _explain(session: Session, bodies: dict[str, list[Obj]]) -> None:
    """Report which rules are split, and require --yes without a terminal."""
    from sully.cli.change.confirm import can_ask

    for name, rules in bodies.items():
        report(
            session,
            f"rule {name} also taints other devices: it is replaced by"
            f" {number_of(len(rules), 'rule')} for them; devices that appear later are not tainted",
        )
    if not (session.options.yes or is_dry_run(session) or can_ask(text_stream(session))):
        raise CommandError(
            "this replaces rules, and there is no terminal to ask for confirmation\n"
            "  use --yes to skip the confirmation, or --dry-run to only show the plan",
            code=2,
        )


def split(snapshot: "Snapshot", rule: "DeviceTaintRule", selects: "DeviceMatcher") -> list[Obj]:
    """Return the rules that replace one, for the devices that are not selected."""
    from sully.domain.planning.rules.split import split_rule

    inventory = snapshot.inventory
    others = [device for device in tainted_by(snapshot, rule) if not selects(*device)]

    def node(device: "DeviceId") -> str:
        published = inventory.published(device)
        return node_of(published) if published is not None else ""

    selectors = selectors_for(others, inventory.devices, node)
    existing = {rule.metadata.name for rule in snapshot.of(RULES).values()}
    return split_rule(to_body(RULES, rule), selectors, existing)


def tainted_by(snapshot: "Snapshot", rule: "DeviceTaintRule") -> "Iterator[DeviceId]":
    """Yield the devices of a rule, published or still allocated."""

    inventory = snapshot.inventory
    selector = inventory.selector_of(rule)
    if selector is None:
        return
    yield from (x for x in inventory.named(selector) if inventory.choose(rule, x).selected)
    for allocated in snapshot.usage.allocated(names_in(selector)):
        if inventory.published(allocated.device) is None:
            yield allocated.device


def _typed(body: Obj) -> "DeviceTaintRule":

    return from_body(RULES, body)


async def delete_named(session: Session, names: Sequence[str]) -> int:
    """Delete rules by name, or all rules that one command created by their label."""

    if not names:
        raise CommandError("missing argument: NAME of a rule", code=2)
    kinds = PLAN_KINDS if is_dry_run(session) else (RULES,)
    needed = (RULES, SLICES) if is_dry_run(session) else (RULES,)
    snapshot = await take_snapshot(session, kinds, needed=needed, gates=True)
    rules = {rule.metadata.name: rule for rule in snapshot.of(RULES).values()}
    deletions: dict[str, Remove] = {}
    for text in map(rule_named, names):
        labels = (rule.metadata.labels.get(TOGETHER) for rule in rules.values())
        matching = [x for x in rules if text in (x, rules[x].metadata.labels.get(TOGETHER))]
        if not matching:
            hint = did_you_mean(text, [*rules, *filter(None, labels)])
            raise CommandError(
                f'devicetaintrule "{text}" not found{hint}{files_hint(names, patterns=False)}\n'
                "  list them with 'sully rules'"
            )
        deletions |= {name: Remove(RULES, Key("", name)) for name in sorted(matching)}
    await warn_of_creators(session, snapshot, [rules[name] for name in deletions])
    bodies = [to_body(RULES, rules[name]) for name in deletions]
    changes = list(deletions.values())
    if is_dry_run(session):
        plan, question = make_plan(session, snapshot, changes), Question(_action(changes, ()))
        code = await confirmed(session, plan, question, ask=False)
        print_objects(session, bodies)
        return code or 0
    await delete_rules(session, changes)
    print_objects(session, bodies)
    return 0
