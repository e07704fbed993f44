"""The end of a run: compares what clients, watches, records, rules and logs show."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from kills.fleet import RECORDS, TAINT_RULES
from replicas import audits
from replicas.figures import FaultResult, Figures
from replicas.following import Watch, WatchHistory
from replicas.scene import POLL_SECONDS, STUCK_SECONDS, Scene
from replicas.work import CONFIG_MAPS

LEASE_SECONDS = 15.0
FAILOVER_SECONDS = LEASE_SECONDS + 5.0
"""How long it may take until another replica's controllers act. When the lease has ended there may
be a member of etcd that does not answer (2 s), and all objects are read, on a busy machine."""


async def compare(scene: Scene, made: set[str], figures: Figures) -> None:
    """Wait until everything is reported and counted, and note differences."""
    scene.stop_counting()
    for history in scene.histories:
        await _wait_complete(scene, history)
    figures.problems += await _miscounted(scene)
    records = list((await scene.clients.call(lambda api: api.list(RECORDS))).items)
    scene.ledger.check_pods(made)
    scene.ledger.check_records(records)
    figures.records = len(records)
    _compare_counters(scene, figures)
    for history in scene.histories:
        figures.problems += history.problems()


def count(scene: Scene, figures: Figures) -> None:
    """Note the counts, and problems that were seen during the run."""
    for counter in scene.counters:
        figures.reads += counter.reads
        figures.writes += counter.written
        figures.problems += counter.problems
    for history in scene.histories:
        figures.changes += len(history.watches[0].changes)
        figures.moves += sum(watch.moves for watch in history.watches)
    figures.problems += scene.ledger.problems
    figures.bound = scene.ledger.bound()
    figures.evicted = scene.ledger.deleted_count()
    figures.elsewhere = scene.clients.moved


async def _wait_complete(scene: Scene, history: WatchHistory) -> None:
    """Wait until every watch of a kind has reached the same version."""
    page = await scene.clients.call(lambda api: api.list(history.kind, history.namespace))
    history.last = int(page.resource_version)
    expected = {
        item["metadata"]["name"]: version
        for item in page.items
        if (version := int(item["metadata"]["resourceVersion"])) > history.begun
    }
    for watch in history.watches:
        await scene.until(partial(_has_reached, watch, expected))


def _has_reached(watch: Watch, expected: dict[str, int]) -> bool:
    return bool(watch.problems) or watch.state(watch.history.last) == expected


async def _miscounted(scene: Scene) -> list[str]:
    """Return rules whose counts are still wrong after some time."""
    end = time.monotonic() + STUCK_SECONDS
    while True:
        rules = await scene.clients.call(lambda api: api.list(TAINT_RULES))
        wrong = scene.ledger.uncounted(list(rules.items))
        if not wrong or time.monotonic() > end:
            return wrong
        await asyncio.sleep(POLL_SECONDS)


def _compare_counters(scene: Scene, figures: Figures) -> None:
    maps = next(history for history in scene.histories if history.kind is CONFIG_MAPS)
    reported = {version for version, _, _ in maps.watches[0].changes}
    for counter in scene.counters:
        if lost := counter.versions - reported:
            text = f"{counter.name}: no watch reported {len(lost)} acknowledged writes"
            figures.problems.append(text)


def terms(scene: Scene) -> list[audits.Term]:
    """Return which machine led from when on."""
    return [
        audits.Term(machine.name, begun)
        for holder, begun in scene.ledger.led
        for machine in scene.machines.all
        if machine.led(holder)
    ]


def compare_logs(
    scene: Scene, lost: Sequence[tuple[FaultResult, datetime]], figures: Figures
) -> None:
    """Note which replica wrote when, and how long each failover took."""
    logs = {m.name: audits.read(m.name, m.data) for m in scene.machines.all}
    led = terms(scene)
    verdict = audits.judge(logs, led)
    figures.problems += verdict.problems
    figures.in_flight = verdict.in_flight
    figures.terms = len(led)
    for result, moment in lost:
        takeover = audits.taken_over(logs, result.machine, moment)
        if takeover is None:
            figures.problems.append(f"{result.name}: no replica took over")
            continue
        result.took_over, result.after = takeover
        if result.after > FAILOVER_SECONDS:
            text = f"{result.name}: {result.after:.1f} s until another replica acted"
            figures.problems.append(text)
