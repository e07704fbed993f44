"""Taints faulty devices as DeviceTaintPolicies specify, and removes the taints again.

Reads policies, their rules, and what sources report (`views/devicepolicies`); writes
DeviceTaintRules, the status of policies, and events. The decisions are `domain/devicepolicies`.
What must survive a restart is in the annotations of rules and in the status; nothing else is
recorded that cannot be observed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sully.api.resource.annotations import CLEARED_AT
from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import DeviceTaintPolicy
from sully.client.events import reference
from sully.client.informers.informer import Informer, own_key
from sully.client.transport import Key
from sully.controllers.devicerules import DeviceRuleWriter
from sully.controllers.devicetaintpolicies.proofs import RETRY, PolicyProofs
from sully.controllers.devicetaintpolicies.queries import PrometheusQueries
from sully.controllers.framework.conditions import write_conditions
from sully.controllers.framework.controller import DONE, ControllerEnv, Result, Watch
from sully.controllers.framework.sources import Channel, same_key
from sully.controllers.proofjobs import ProofJobs, owner_key
from sully.domain.devicepolicies.decisions import PolicyContext, PolicyDecision, decide, transition
from sully.domain.devicepolicies.rules import (
    RESUMED_AT,
    acting_states,
    decode_state,
    desired_rules,
    is_approved,
    policy_name,
    time_in,
)
from sully.domain.devicepolicies.settings import DRY_RUN, settings_of
from sully.domain.devicepolicies.states import DeviceState, Notice, Observation, has_rule
from sully.domain.devicepolicies.status import findings, proof_finding, status_fields
from sully.domain.devicepolicies.suppression import (
    SUPPRESSED,
    Suppressed,
    active,
    is_enforced,
    next_end,
    selects_as,
    suppressing_policy,
    suppression_finding,
    suppression_rules,
)
from sully.domain.devicepolicies.suppression_notices import changes
from sully.domain.devices.pools import PoolId
from sully.domain.proofs.outcomes import ProofOutcome
from sully.machinery.meta import find_condition
from sully.views.devicepolicies.facts import FactsView
from sully.views.devicepolicies.policy_devices import PolicyDevices
from sully.views.kinds import DEVICE_POLICIES

NAME: Final = "device-taint-policy-controller"
BY_POLICY: Final = "policy"
BY_SUPPRESSION: Final = "suppression"
INTERVAL: Final = timedelta(seconds=1)
"""The least time between two reports on a policy: many devices change together."""
SHARE: Final = 10
"""One policy is decided in at most one of so many parts of the time."""


class _Tracked(msgspec.Struct):
    """A policy since the controller started, or since its spec changed."""

    policy: DeviceTaintPolicy
    devices: PolicyDevices
    states: dict[str, DeviceState]
    storm_since: datetime | None
    reported: dict[str, Any] = msgspec.field(default_factory=dict)
    report_due: datetime | None = None
    decide_due: datetime | None = None
    proof_problems: dict[str, str] = msgspec.field(default_factory=dict)
    suppressed: dict[str, tuple[Suppressed, ...]] | None = None
    """What it suppressed when it was last decided; None: not decided yet."""
    mode: str = ""
    """Its mode when it was last decided."""


class DeviceTaintPolicyController:
    """Executes DeviceTaintPolicies."""

    name = NAME

    def __init__(
        self,
        *,
        policies: Informer[DeviceTaintPolicy],
        rules: Informer[DeviceTaintRule],
        facts: FactsView,
        env: ControllerEnv,
        jobs: ProofJobs | None = None,
        queries: PrometheusQueries | None = None,
    ) -> None:
        self._policies = policies
        self._features = facts.inventory.features
        self._jobs = jobs
        self._proofs = PolicyProofs(jobs)
        self._rules = rules
        self._rules.add_index(BY_POLICY, lambda rule: (policy_name(rule),))
        self._facts = facts
        self._rules.add_index(BY_SUPPRESSION, lambda rule: (suppressing_policy(rule),))
        self._transport, self._recorder, self._clock = env
        self._writer = DeviceRuleWriter(env.transport, NAME)
        self._tracked: dict[Key, _Tracked] = {}
        self._affected: Channel[Key] = Channel()
        self._queries = queries
        if queries is not None:
            queries.notify = self._affected.send
        facts.on_change(self._facts_changed)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for policies, for their rules, and for what sources report."""
        yield Watch(self._policies, own_key)
        yield Watch(self._rules, _policy_key)
        yield Watch(self._affected, same_key)
        if self._jobs is not None:
            yield Watch(self._jobs.jobs, partial(owner_key, DEVICE_POLICIES))

    def _facts_changed(self, pools: Iterable[PoolId]) -> None:
        for key, tracked in self._tracked.items():
            if tracked.devices.changed(pools):
                self._affected.send(key)

    async def reconcile(self, key: Key) -> Result:
        """Decide about all devices of a policy, and execute that."""
        policy, now = self._policies.get(key), self._clock.now()
        if policy is None or policy.metadata.deletion_timestamp is not None:
            # Its rules are deleted by garbage collection, or kept.
            self._tracked.pop(key, None)
            if self._queries is not None:
                self._queries.forget(key)
            return DONE
        tracked = self._track(key, policy)
        if self._queries is not None:
            self._queries.track(key, policy)
            tracked.devices.queried(self._queries.results(key))
        if tracked.decide_due is not None and now < tracked.decide_due:
            return Result(requeue_after=tracked.decide_due - now)
        proofs = await self._proofs.outcomes(policy, tracked.devices, tracked.states)
        started = self._clock.monotonic()
        expires = self._facts.expire(now)
        decision = self._decide(tracked, proofs, now)
        elapsed = timedelta(seconds=self._clock.monotonic() - started)
        tracked.decide_due = now + elapsed * SHARE
        if settings_of(policy).mode != DRY_RUN:
            desired = desired_rules(policy, decision.states)
            await self._writer.write(desired, self._rules_of(policy))
        suppression_ends = await self._suppress(tracked, now)
        tracked.proof_problems = await self._proofs.run(policy, tracked.devices, decision)
        later = await self._report(tracked, decision, now)
        retry = now + RETRY if decision.proofs else None
        stale = self._queries.expires_in(key) if self._queries is not None else None
        requeue = now + stale if stale is not None else None
        moments = (decision.requeue_at, expires, later, retry, requeue, suppression_ends)
        times = [time for time in moments if time is not None]
        return Result(requeue_after=max(timedelta(0), min(times) - now)) if times else DONE

    def _track(self, key: Key, policy: DeviceTaintPolicy) -> _Tracked:
        tracked = self._tracked.get(key)
        if tracked is None or tracked.policy.metadata.uid != policy.metadata.uid:
            tracked = _Tracked(
                policy,
                PolicyDevices(policy, self._facts),
                self._restored(policy),
                policy.status.storm_since,
            )
            self._tracked[key] = tracked
        elif tracked.policy.spec != policy.spec:
            tracked.devices = PolicyDevices(policy, self._facts)
        tracked.policy = policy
        return tracked

    def _restored(self, policy: DeviceTaintPolicy) -> dict[str, DeviceState]:
        """Return the states that rules and status have."""
        states = {state.device: state for state in policy.status.devices}
        if settings_of(policy).mode != DRY_RUN:
            # Rules are what is true; a rule that was deleted meanwhile starts again.
            states = {device: one for device, one in states.items() if not has_rule(one)}
        for rule in self._rules_of(policy):
            state = decode_state(rule)
            states[state.device] = state
        return states

    def _rules_of(self, policy: DeviceTaintPolicy) -> list[DeviceTaintRule]:
        return self._rules.by_index(BY_POLICY, policy.metadata.name)

    def _decide(
        self, tracked: _Tracked, proofs: Mapping[str, ProofOutcome], now: datetime
    ) -> PolicyDecision:
        policy, devices, settings = tracked.policy, tracked.devices, settings_of(tracked.policy)
        devices.update(now)
        old, notices = tracked.states, {}
        if tracked.mode == DRY_RUN != settings.mode:
            old = acting_states(old, self._rules_of(policy))
        tracked.mode = settings.mode
        # Without a taint it only suppresses those of drivers.
        no_taint = policy.spec.taint is None
        excluded = [device for device in old if no_taint or devices.is_excluded(device)]
        states = {device: state for device, state in old.items() if device not in excluded}
        for device in excluded:
            notices[device] = Notice(
                "NoLongerSelected", "The policy is not for the device any more"
            )
        seen = self._with_annotations(policy, devices.observations(states))
        for device in {*proofs, *tracked.proof_problems} & {*seen}:
            seen[device] = replace(
                seen[device],
                proof=proofs.get(device),
                proof_problem=tracked.proof_problems.get(device, ""),
            )
        groups = devices.groups({*states, *seen})
        context = PolicyContext(
            groups=groups,
            storm_since=tracked.storm_since,
            resumed_at=time_in(policy.metadata.annotations, RESUMED_AT),
            now=now,
        )
        decision = decide(settings, states, seen, context)
        notices |= decision.notices
        for device in sorted({*old, *decision.states}):
            notice = notices.get(device) or transition(
                old.get(device), decision.states.get(device), settings.mode
            )
            if notice is not None:
                self._announce(policy, device, notice)
        if decision.storm_since is not None and tracked.storm_since is None:
            text = "Many devices have new faults: no further step begins until it is resumed"
            self._recorder.event(reference(DEVICE_POLICIES, policy), "Warning", "Storm", text)
        tracked.states, tracked.storm_since = dict(decision.states), decision.storm_since
        return decision

    async def _suppress(self, tracked: _Tracked, now: datetime) -> datetime | None:
        """Suppress taints of drivers as the policy specifies; return when that ends next."""
        policy = tracked.policy
        may_suppress = self._features.suppression and is_enforced(policy)
        current = active(tracked.devices.suppressed, now) if may_suppress else {}
        selectors = self._features.rule_selectors
        desired = (
            suppression_rules(policy, current, now, rule_selectors=selectors)
            if may_suppress
            else {}
        )
        rules = self._rules.by_index(BY_SUPPRESSION, policy.metadata.name)
        current_rules = [rule for rule in rules if selects_as(rule, desired)]
        # A write changes no selector.
        await self._writer.write({}, [rule for rule in rules if rule not in current_rules])
        await self._writer.write(desired, current_rules)
        before, tracked.suppressed = tracked.suppressed, current
        # After a restart, what the status has is not reported again.
        if before is not None or not policy.status.suppressed:
            for device, notice in changes(before or {}, current):
                self._announce(policy, device, notice)
        return next_end(policy, now)

    def _announce(self, policy: DeviceTaintPolicy, device: str, notice: Notice) -> None:
        text, about = f"{device}: {notice.message}", reference(DEVICE_POLICIES, policy)
        self._recorder.event(about, "Warning" if notice.warning else "Normal", notice.reason, text)

    def _with_annotations(
        self, policy: DeviceTaintPolicy, seen: dict[str, Observation]
    ) -> dict[str, Observation]:
        """Add what people declared about devices, by annotations of their rules."""
        for rule in self._rules_of(policy):
            device, annotations = decode_state(rule).device, rule.metadata.annotations
            if device in seen:
                seen[device] = replace(
                    seen[device],
                    approved=is_approved(annotations),
                    cleared_at=time_in(annotations, CLEARED_AT),
                )
        return seen

    async def _report(
        self, tracked: _Tracked, decision: PolicyDecision, now: datetime
    ) -> datetime | None:
        """Write the status if it changed and is due; return when it will be."""
        policy = tracked.policy
        groups = tracked.devices.groups(())
        fields = status_fields(policy, decision, groups)
        conditions = findings(policy, decision, groups, tracked.devices.problems)
        conditions.append(proof_finding(decision, tracked.proof_problems))
        if policy.spec.suppress or find_condition(policy.status.conditions, SUPPRESSED):
            suppressed = tracked.devices.suppressed
            conditions.append(
                suppression_finding(policy, suppressed, now, supported=self._features.suppression)
            )
            fields["suppressed"] = len(tracked.suppressed or ()) or None
        desired = {**fields, "findings": conditions}
        if desired == tracked.reported:
            return None
        if tracked.report_due is not None and now < tracked.report_due:
            return tracked.report_due
        await write_conditions(
            self._transport,
            DEVICE_POLICIES,
            policy,
            conditions,
            now=now,
            field_manager=NAME,
            other_fields=fields,
        )
        tracked.reported, tracked.report_due = desired, now + INTERVAL
        return None


def _policy_key(rule: DeviceTaintRule) -> Iterable[Key]:
    name = policy_name(rule) or suppressing_policy(rule)
    if name:
        yield Key("", name)
