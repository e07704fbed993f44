"""Writes for placements: creates, changes and deletes PlacementDecisions, and tells of it.

Every change names the version it is based on, so that a decision made from an old cache is refused
by the server instead of undoing a newer one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sully.api.cluster.types import Placement, PlacementDecision
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Transport
from sully.controllers.placement.plans import Plan, Write
from sully.controllers.placement.telling import Teller
from sully.domain.placement.status import Status
from sully.machinery.errors import ApiError, Conflict, NotFound
from sully.views.fleet_kinds import DECISIONS, PLACEMENTS
from sully.views.mutation_cache import MutationCache

Obj = dict[str, Any]


class Binder:
    """Writes decisions."""

    def __init__(
        self,
        transport: Transport,
        teller: Teller,
        placements: MutationCache[Placement],
        decisions: MutationCache[PlacementDecision],
    ) -> None:
        self._transport = transport
        self._teller = teller
        self._placements = placements
        self._decisions = decisions

    async def bind(
        self, placement: Placement, plan: Plan, status: Status, scores: str
    ) -> ApiError | None:
        """Do everything that can be done; return what could not.

        Raises Conflict or NotFound as soon as the world turns out to be another one.
        """
        problem: ApiError | None = None
        for write in plan.writes:
            try:
                await self._write(placement, write, status, scores)
            except (Conflict, NotFound):
                raise
            except ApiError as error:
                problem = problem or error
        for gone in plan.removals:
            await self._remove(placement, gone)
        return problem

    async def tell(self, key: Key, patch: Obj) -> None:
        """Write the status of a placement."""
        answer = await self._transport.patch(PLACEMENTS, key, patch, subresource="status")
        self._placements.mutated(answer)

    async def _write(self, placement: Placement, write: Write, status: Status, scores: str) -> None:
        decision = write.old
        if decision is None:
            decision = await self._create(placement, write)
            self._teller.created(placement, decision)
        if write.clusters:
            decision = await self._patch(decision, _clusters(write), "status")
            self._teller.updated(placement, decision, status, scores)
        if write.relabel:
            await self._patch(decision, {}, "", write.labels)

    async def _create(self, placement: Placement, write: Write) -> PlacementDecision:
        owner = placement.metadata
        body = {
            "metadata": {
                "name": write.part.name,
                "namespace": owner.namespace,
                "labels": dict(write.labels),
                "ownerReferences": [
                    {
                        "apiVersion": PLACEMENTS.api_version,
                        "kind": PLACEMENTS.kind,
                        "name": owner.name,
                        "uid": owner.uid,
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ],
            }
        }
        return self._wrote(await self._transport.create(DECISIONS, body))

    async def _patch(
        self,
        decision: PlacementDecision,
        change: Obj,
        subresource: str,
        labels: Mapping[str, str] | None = None,
    ) -> PlacementDecision:
        metadata = decision.metadata
        stamp: Obj = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        if labels is not None:
            stamp["labels"] = dict.fromkeys(metadata.labels) | dict(labels)
        key = Key(metadata.namespace, metadata.name)
        patch = {"metadata": stamp, **change}
        return self._wrote(
            await self._transport.patch(DECISIONS, key, patch, subresource=subresource)
        )

    def _wrote(self, decision: PlacementDecision) -> PlacementDecision:
        # Whoever is decided next sees it, though the cache does not have it yet.
        self._decisions.mutated(decision)
        return decision

    async def _remove(self, placement: Placement, decision: PlacementDecision) -> None:
        metadata = decision.metadata
        key, options = Key(metadata.namespace, metadata.name), DeleteOptions(uid=metadata.uid)
        try:
            await self._transport.delete(DECISIONS, key, options)
        except NotFound:
            return
        self._decisions.deleted(decision)
        self._teller.deleted(placement, decision)


def _clusters(write: Write) -> Obj:
    named = [{"clusterName": name, "reason": ""} for name in write.part.clusters]
    return {"status": {"decisions": named}}
