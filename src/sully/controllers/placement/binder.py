"""Writes PlacementDecisions and the status of placements, and records events about decisions.

Every change has the version it is based on, so that the server refuses a decision from an old cache
instead of undoing a newer one. The texts of events are domain/placement/results/notes.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from msgspec.structs import replace

from sully.api.cluster.types import DecisionGroupStatus, Placement, PlacementDecision
from sully.client.events import EventRecorder, reference
from sully.client.objects import key_of
from sully.client.options import DeleteOptions
from sully.client.transport import Transport
from sully.controllers.framework.conditions import encode_condition, preconditions
from sully.controllers.placement.plans import DecisionWrites, Write
from sully.controllers.workloads.kinds import controller_ref
from sully.domain.placement.incremental.reporting import status_after
from sully.domain.placement.results.conditions import SATISFIED, PlacementCondition
from sully.domain.placement.results.notes import Verb, decision_note
from sully.domain.placement.results.outcome import Outcome
from sully.domain.placement.results.status import SUCCESS, Status
from sully.machinery.errors import ApiError, Conflict, NotFound
from sully.views.fleet_kinds import DECISIONS, PLACEMENTS
from sully.views.mutation_cache import MutationCache

Obj = dict[str, Any]


class Binder:
    """Writes decisions and statuses."""

    def __init__(
        self,
        transport: Transport,
        recorder: EventRecorder,
        placements: MutationCache[Placement],
        decisions: MutationCache[PlacementDecision],
    ) -> None:
        self._transport = transport
        self._recorder = recorder
        self._placements = placements
        self._decisions = decisions

    async def bind(
        self, placement: Placement, plan: DecisionWrites, status: Status, scores: str
    ) -> ApiError | None:
        """Execute all writes of a plan; return the first error.

        Raises Conflict or NotFound as soon as the plan turns out to be based on an old cache.
        """
        problem: ApiError | None = None
        for write in plan.writes:
            try:
                await self._write(placement, write, status, scores)
            except (Conflict, NotFound):
                raise
            except ApiError as error:
                problem = problem or error
        for decision in plan.deletions:
            await self._delete(placement, decision)
        return problem

    async def update_status(self, placement: Placement, outcome: Outcome, now: datetime) -> None:
        """Write the status of a placement, if it changed."""
        status = status_after(placement, outcome, now)
        if status is None:
            return
        body = {
            "numberOfSelectedClusters": status.number_of_selected_clusters,
            "decisionGroups": list(map(_encode_group, status.decision_groups)),
            "conditions": list(map(encode_condition, status.conditions)),
        }
        patch, key = preconditions(placement.metadata) | {"status": body}, key_of(placement)
        written = await self._transport.patch(PLACEMENTS, key, patch, subresource="status")
        self._placements.mutated(written)

    async def _write(self, placement: Placement, write: Write, status: Status, scores: str) -> None:
        decision = write.old
        if decision is None:
            decision = await self._create(placement, write)
            self._record("created", placement, decision, "DecisionCreate")
        if write.clusters:
            clusters = [{"clusterName": name, "reason": ""} for name in write.part.clusters]
            body = {"status": {"decisions": clusters}}
            decision = await self._patch(decision, body, "status")
            self._record("updated", placement, decision, "DecisionUpdate", status)
            if scores:
                self._event(placement, decision, "Normal", "ScoreUpdate", scores)
        if write.relabel:
            await self._patch(decision, {}, "", write.labels)

    async def _create(self, placement: Placement, write: Write) -> PlacementDecision:
        body = {
            "metadata": {
                "name": write.part.name,
                "namespace": placement.metadata.namespace,
                "labels": dict(write.labels),
                "ownerReferences": [controller_ref(PLACEMENTS, placement.metadata)],
            }
        }
        return self._written(await self._transport.create(DECISIONS, body))

    async def _patch(
        self,
        decision: PlacementDecision,
        change: Obj,
        subresource: str,
        labels: Mapping[str, str] | None = None,
    ) -> PlacementDecision:
        patch = preconditions(decision.metadata) | change
        if labels is not None:
            patch["metadata"]["labels"] = dict.fromkeys(decision.metadata.labels) | dict(labels)
        key = key_of(decision)
        return self._written(
            await self._transport.patch(DECISIONS, key, patch, subresource=subresource)
        )

    def _written(self, decision: PlacementDecision) -> PlacementDecision:
        # The next placement sees it, though the cache does not have it yet.
        self._decisions.mutated(decision)
        return decision

    async def _delete(self, placement: Placement, decision: PlacementDecision) -> None:
        options = DeleteOptions(uid=decision.metadata.uid)
        try:
            await self._transport.delete(DECISIONS, key_of(decision), options)
        except NotFound:
            return
        self._decisions.deleted(decision)
        self._record("deleted", placement, decision, "DecisionDelete")

    def _record(
        self,
        verb: Verb,
        placement: Placement,
        decision: PlacementDecision,
        reason: str,
        status: Status = SUCCESS,
    ) -> None:
        note = decision_note(verb, decision.metadata.name, key_of(placement), status)
        type_: Literal["Normal", "Warning"] = "Warning" if status.code == "Warning" else "Normal"
        self._event(placement, decision, type_, reason, note)

    def _event(
        self,
        placement: Placement,
        decision: PlacementDecision,
        type_: Literal["Normal", "Warning"],
        reason: str,
        note: str,
    ) -> None:
        regarding = reference(PLACEMENTS, placement)
        # As OCM: the related object has no resourceVersion.
        related = replace(reference(DECISIONS, decision), resource_version="")
        self._recorder.event(regarding, type_, reason, note, action=f"{reason}d", related=related)


def with_failure(outcome: Outcome, message: str) -> Outcome:
    """Return an outcome whose conditions report that decisions could not be written."""
    finding = PlacementCondition(SATISFIED, "False", "NotAllDecisionsScheduled", message)
    return replace(outcome, conditions=(outcome.conditions[0], finding))


def _encode_group(group: DecisionGroupStatus) -> Obj:
    return {
        "decisionGroupIndex": group.decision_group_index,
        "decisionGroupName": group.decision_group_name,
        "decisions": list(group.decisions),
        "clusterCount": group.cluster_count,
    }
