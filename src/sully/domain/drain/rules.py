"""The DeviceTaintRules of a cordon, and what a drain keeps in them.

One rule has one name for one selector, for every user and every cordon. Labels mark these rules,
and which of them were created together; the annotation has what another run of the same drain has
to know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sully.api.resource.types import DeviceTaint, DeviceTaintRule
from sully.domain.devices.rules import TOGETHER
from sully.domain.devices.taints import NO_SCHEDULE
from sully.domain.drain.messages import DrainState
from sully.domain.planning.rules.selectors import RuleSelector, digest, name_suffixes
from sully.domain.planning.rules.taint_grammar import TaintToAdd
from sully.domain.planning.rules.taint_rules import TaintRequest, build_rules
from sully.machinery.serialization.notes import have_zones, read_note

KEY: Final = "sully.dev/unschedulable"
"""The taint of cordoned devices."""
TAINT: Final = DeviceTaint(key=KEY, effect=NO_SCHEDULE)
OPERATION: Final = "sully.dev/operation"
"""The label of rules of a cordon or a drain."""
CORDON, DRAIN = "cordon", "drain"
STATE: Final = "sully.dev/drain-state"
"""The annotation with the state of a drain, on one of its rules."""

Obj = dict[str, Any]


def cordon_rules(
    selectors: Sequence[RuleSelector], operation: str, request: TaintRequest
) -> list[Obj]:
    """Return the rules that cordon devices."""
    group = group_name(selectors)
    return [_labelled(_rule(selector, request), operation, group) for selector in selectors]


def group_name(selectors: Sequence[RuleSelector]) -> str:
    """Return the label of all rules that one command creates for a selection."""
    return f"cordon-{digest([selector.fields() for selector in selectors])}"


def belongs_to(rule: DeviceTaintRule, selectors: Sequence[RuleSelector]) -> bool:
    """Report whether a rule cordons this selection, or is what is left of such a rule."""
    if rule.metadata.labels.get(TOGETHER) == group_name(selectors):
        return True
    return rule.metadata.name in map(rule_name, selectors)


def cordon_request(**fields: Any) -> TaintRequest:
    """Return the taint of a cordon, with further fields of its rules."""
    return TaintRequest(taint=TaintToAdd(TAINT.key, "", TAINT.effect), **fields)


def rule_name(selector: RuleSelector) -> str:
    """Return the name of the rule that cordons what a selector selects."""
    (suffix,) = name_suffixes([selector])
    # Pools of several drivers may have the same node.
    return f"cordon-{suffix.removesuffix(digest(selector)).rstrip('-')}-{digest(selector)}"


def _rule(selector: RuleSelector, request: TaintRequest) -> Obj:
    (rule,) = build_rules([selector], replace(request, name=rule_name(selector)))
    return rule


def _labelled(rule: Obj, operation: str, group: str) -> Obj:
    labels = {**rule["metadata"].get("labels", {}), OPERATION: operation, TOGETHER: group}
    return {**rule, "metadata": {**rule["metadata"], "labels": labels}}


def metadata_patch(rule: Obj) -> Obj:
    """Return a patch of an existing rule: why, until when, and by which operation.

    Its taint stays as it is: the effect may be NoExecute by now.
    """
    labels = {OPERATION: rule["metadata"]["labels"][OPERATION]}
    patch: Obj = {"metadata": {"labels": labels}}
    if rule["metadata"].get("annotations"):
        patch["metadata"]["annotations"] = rule["metadata"]["annotations"]
    if rule["spec"]["taint"].get("description"):
        patch["spec"] = {"taint": {"description": rule["spec"]["taint"]["description"]}}
    return patch


def is_cordon(rule: DeviceTaintRule) -> bool:
    """Report whether a rule was created by a cordon or a drain."""
    return rule.spec.taint.key == KEY and rule.metadata.labels.get(OPERATION) in (CORDON, DRAIN)


def encode_state(state: DrainState) -> str:
    """Return the state of a drain as the value of its annotation."""
    return msgspec.json.encode(state, order="deterministic").decode()


def decode_state(annotations: Sequence[Mapping[str, str]]) -> DrainState:
    """Return the state that some rule has; an invalid one is ignored."""
    for values in annotations:
        text = values.get(STATE)
        state = read_note(text, DrainState) if text else None
        if state is not None and have_zones([state.full_at]):
            return state
    return DrainState()
