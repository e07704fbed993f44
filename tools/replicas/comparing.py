"""The end of a run: everything that anyone was told is held against everything else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from kills.fleet import RECORDS, TAINT_RULES
from replicas import audits
from replicas.figures import Figures, Happened
from replicas.following import Story, Watch
from replicas.scene import LOOK_SECONDS, STUCK_SECONDS, Scene
from replicas.work import CONFIG_MAPS

LEASE_SECONDS = 15.0
FAILOVER_SECONDS = LEASE_SECONDS + 5.0
"""How long it may take until another replica's controllers act. When the lease has ended there may
be a member of etcd that does not answer (2 s), and all objects are read, on a busy machine."""


async def compare(scene: Scene, made: set[str], figures: Figures) -> None:
    """Wait until all is told and counted, and note what does not fit."""
    scene.stop_counting()
    for story in scene.stories:
        await _told(scene, story)
    figures.problems += await _miscounted(scene)
    records = list((await scene.clients.ask(lambda api: api.list(RECORDS))).items)
    scene.ledger.check_pods(made)
    scene.ledger.check_records(records)
    figures.records = len(records)
    _compare_counters(scene, figures)
    for story in scene.stories:
        figures.problems += story.problems()


def count(scene: Scene, figures: Figures) -> None:
    """Note what was done, and what was seen to be wrong at once."""
    for counter in scene.counters:
        figures.reads += counter.reads
        figures.writes += counter.written
        figures.problems += counter.problems
    for story in scene.stories:
        figures.changes += len(story.watches[0].changes)
        figures.moves += sum(watch.moves for watch in story.watches)
    figures.problems += scene.ledger.problems
    figures.bound = scene.ledger.bound()
    figures.evicted = scene.ledger.gone()
    figures.elsewhere = scene.clients.moved


async def _told(scene: Scene, story: Story) -> None:
    """Wait until every watch of a kind has come to where all of them can end."""
    page = await scene.clients.ask(lambda api: api.list(story.kind, story.namespace))
    story.last = int(page.resource_version)
    there = {
        item["metadata"]["name"]: version
        for item in page.items
        if (version := int(item["metadata"]["resourceVersion"])) > story.begun
    }
    for watch in story.watches:
        await scene.until(partial(_came_to, watch, there))


def _came_to(watch: Watch, there: dict[str, int]) -> bool:
    return bool(watch.problems) or watch.state(watch.story.last) == there


async def _miscounted(scene: Scene) -> list[str]:
    """Return what rules still say wrongly after they had time to find out."""
    end = time.monotonic() + STUCK_SECONDS
    while True:
        rules = await scene.clients.ask(lambda api: api.list(TAINT_RULES))
        wrong = scene.ledger.uncounted(list(rules.items))
        if not wrong or time.monotonic() > end:
            return wrong
        await asyncio.sleep(LOOK_SECONDS)


def _compare_counters(scene: Scene, figures: Figures) -> None:
    maps = next(story for story in scene.stories if story.kind is CONFIG_MAPS)
    told = {version for version, _, _ in maps.watches[0].changes}
    for counter in scene.counters:
        if lost := counter.versions - told:
            text = f"{counter.name}: no watch told of {len(lost)} acknowledged writes"
            figures.problems.append(text)


def terms(scene: Scene) -> list[audits.Term]:
    """Return which machine led from when on."""
    return [
        audits.Term(machine.name, begun)
        for holder, begun in scene.ledger.led
        for machine in scene.machines.all
        if machine.led(holder)
    ]


def compare_logs(scene: Scene, lost: Sequence[tuple[Happened, datetime]], figures: Figures) -> None:
    """Note who acted when, and how long it took after each loss of a leader."""
    logs = {each.name: audits.read(each.name, each.data) for each in scene.machines.all}
    led = terms(scene)
    verdict = audits.judge(logs, led)
    figures.problems += verdict.problems
    figures.in_flight = verdict.in_flight
    figures.terms = len(led)
    for happened, moment in lost:
        found = audits.taken_over(logs, happened.machine, moment)
        if found is None:
            figures.problems.append(f"{happened.name}: nobody took over")
            continue
        happened.took_over, happened.after = found
        if happened.after > FAILOVER_SECONDS:
            text = f"{happened.name}: {happened.after:.1f} s until another replica acted"
            figures.problems.append(text)
