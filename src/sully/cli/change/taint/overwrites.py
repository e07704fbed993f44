"""Rules that `sully taint --overwrite` changes: which devices lose a taint, and how to undo it."""

from collections.abc import Iterator, Sequence
from json import dumps
from shlex import quote
from typing import TYPE_CHECKING, Any

from sully.cli.change.taint.rules import own_label
from sully.cli.change.taint.splitting import tainted_by
from sully.cli.client.options import server_flags
from sully.cli.client.session import Session
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule
    from sully.domain.devices.pools import DeviceId
    from sully.views.snapshot.snapshot import Snapshot

Obj = dict[str, Any]


def merged(snapshot: "Snapshot", body: Obj) -> Obj:
    """Return a rule as it would be after --overwrite: kubectl refuses the nulls of a patch."""
    from sully.client.objects import to_body
    from sully.machinery.patch.merge_patch import apply_merge_patch
    from sully.views.kinds import RULES

    existing = existing_rule(snapshot, body)
    result: Obj = apply_merge_patch(to_body(RULES, existing) if existing else {}, body)
    return result


def existing_rule(snapshot: "Snapshot", body: Obj) -> "DeviceTaintRule | None":
    """Return the rule that a body overwrites, or None."""
    from sully.client.objects import key_of
    from sully.views.kinds import RULES

    return snapshot.get(RULES, key_of(body))


def lost_taints(snapshot: "Snapshot", bodies: Sequence[Obj]) -> list[str]:
    """Return which devices would lose the taint of a rule because it selects others then."""
    from sully.client.objects import from_body
    from sully.views.kinds import RULES

    if all(existing_rule(snapshot, body) is None for body in bodies):
        return []
    after: dict[DeviceId, set[tuple[str, str]]] = {}
    for body in bodies:
        rule = from_body(RULES, merged(snapshot, body))
        for device in tainted_by(snapshot, rule):
            after.setdefault(device, set()).add(_taint(rule))
    texts = []
    for rule in filter(None, (existing_rule(snapshot, body) for body in bodies)):
        before = list(tainted_by(snapshot, rule))
        if all(device in after for device in before):
            # What happens to these devices is what was asked for.
            continue
        lost = [device for device in before if _taint(rule) not in after.get(device, ())]
        texts.append(_lost_text(snapshot, rule, lost))
    return texts


def _taint(rule: "DeviceTaintRule") -> tuple[str, str]:
    return rule.spec.taint.key, rule.spec.taint.effect


def _lost_text(snapshot: "Snapshot", rule: "DeviceTaintRule", devices: "Sequence[DeviceId]") -> str:
    from sully.api.resource.annotations import creator_of
    from sully.views.devices.device_views import node_of

    published = filter(None, map(snapshot.inventory.published, devices))
    nodes = sorted({node_of(device) for device in published} - {""})
    where = (
        f" of node {nodes[0]}" if len(nodes) == 1 else f" of {len(nodes)} nodes" if nodes else ""
    )
    creator = creator_of(rule.metadata.annotations)
    by = f", created by {creator}" if creator else ""
    key, effect = _taint(rule)
    what = f"{number_of(len(devices), 'device')}{where} would lose {key}:{effect}"
    return f"{what} of rule {rule.metadata.name}{by}"


def undo_command(session: Session, snapshot: "Snapshot", bodies: Sequence[Obj]) -> str:
    """Return the command that deletes new rules, and restores those that were overwritten."""
    from sully.cli.change.aftermath import delete_command

    created = [body for body in bodies if existing_rule(snapshot, body) is None]
    commands = list(_restoring(snapshot, bodies))
    if created:
        names = [str(body["metadata"]["name"]) for body in created]
        group = own_label(snapshot, bodies) if len(created) == len(bodies) else ""
        commands.append(delete_command(names, group))
    flags = server_flags(session.options)
    return " && ".join(f"{command}{flags}" for command in commands)


def _restoring(snapshot: "Snapshot", bodies: Sequence[Obj]) -> Iterator[str]:
    """Yield the commands that give overwritten rules what they had."""
    from sully.client.objects import to_body
    from sully.machinery.patch.merge_patch import reverse_merge_patch
    from sully.views.kinds import RULES

    for body in bodies:
        rule = existing_rule(snapshot, body)
        if rule is None:
            continue
        patch = reverse_merge_patch(to_body(RULES, rule), body)
        if patch:
            text = quote(dumps(patch, separators=(",", ":")))
            yield f"kubectl patch devicetaintrule {rule.metadata.name} --type merge -p {text}"
