"""Objects as a server would store them, where the snapshot of a plan is not the newest."""

from __future__ import annotations

from sully.client.direct import DirectTransport
from sully.planning.dryrun.dry_run import DryRun
from sully.testing.builders import manifest, rule, taint
from sully.testing.clock import NOON
from sully.testing.cluster import in_process
from sully.views.kinds import RULES
from sully.views.snapshot.snapshot import Snapshot


async def test_an_object_that_was_created_after_the_snapshot() -> None:
    """The plan is that of the snapshot; the write refuses what exists by then."""
    body = manifest(rule("hot", with_taint=taint("NoSchedule")))
    async with in_process() as plane:
        transport = DirectTransport(plane.direct())
        await transport.create(RULES.read_as(dict), body)

        stored = await DryRun(Snapshot([], taken=NOON), transport).stored(RULES, body)

    assert (stored.metadata.name, stored.spec.taint.effect) == ("hot", "NoSchedule")
