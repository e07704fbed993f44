"""A ReplicaSet whose server is unreachable while it creates or deletes pods continues later."""

from __future__ import annotations

import pytest

from controllers.lifecycles import (
    REPLICA_SETS,
    active,
    open_namespace,
    owned_pods,
    replica_set,
    replica_sets,
)
from controllers.world import World
from sully.client.calls import Call
from sully.client.direct import DirectTransport, Reply
from sully.client.leases import NotLeadingError
from sully.client.transport import Key, UnreachableError, UnreadableError
from sully.controllers.framework.manager import Manager
from sully.controllers.workloads import kinds as workloads
from sully.controllers.workloads.replicasets import ReplicaSetController
from sully.server.inprocess import InProcess
from sully.server.requests import User

NAME = ReplicaSetController.name
WEB = Key("a", "web")


class Unsure(DirectTransport):
    """A way to the server on which some calls for pods fail, before or after they had effect."""

    def __init__(self, world: World) -> None:
        super().__init__(InProcess(world.api, User(NAME, ("system:masters",)), agent=NAME))
        self.failures: list[Exception] = []
        self.late = False

    async def _call(self, call: Call) -> Reply:
        if call.ref.plural != "pods" or not self.failures:
            return await super()._call(call)
        if self.late:
            await super()._call(call)
        raise self.failures.pop()

    def make(self, world: World, manager: Manager) -> ReplicaSetController:
        return ReplicaSetController(
            owned_pods(world, manager, workloads.REPLICA_SETS, NAME, transport=self)
        )


@pytest.fixture(autouse=True)
async def _namespace(world: World) -> None:
    await open_namespace(world)


ERRORS = {
    "away": UnreachableError("refused"),
    "no answer to read": UnreadableError("no JSON"),
    "not leading for a moment": NotLeadingError("the lease is not held"),
    "a mistake of ours": KeyError("x"),
}


@pytest.mark.parametrize("late", [False, True], ids=["nothing happened", "it happened"])
@pytest.mark.parametrize("expected", [7, 1], ids=["more", "less"])
@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS.keys())
async def test_what_failed_is_made_up_for_immediately(
    world: World, error: Exception, expected: int, late: bool
) -> None:
    await replica_set(world, 4)
    async with world.controlled(replica_sets):
        await world.settle()
    transport = Unsure(world)
    async with world.controlled(transport.make):
        await world.settle()
        transport.failures, transport.late = [error] * 3, late
        await world.admin.patch(REPLICA_SETS, WEB, {"spec": {"replicas": expected}})
        # Far less than it would wait for events of pods that it believes to have created.
        await world.pass_time(10, step=0.5)

    assert transport.failures == []
    assert len(await active(world)) == expected
