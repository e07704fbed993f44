"""Earlier releases and the current one run on the same data in turn. `make robust` does more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crashes.journal import Event, Journal, Name, Write, body
from faults.backups import Saved, marked
from faults.fleet import Held, differences
from faults.layer import LayerError
from faults.planes import plane
from faults.releases import CURRENT, EARLIER, Release, ReleaseError
from faults.rounds import Rounds

FAULTS = 16
"""Enough for a downgrade, an upgrade, and a way back with a backup."""
SEED = 20261118
A, B = Name("default", "w0-0"), Name("default", "w0-1")


@pytest.mark.slow
@pytest.mark.parametrize("release", EARLIER, ids=lambda release: release.version)
def test_upgrade_and_downgrade_with_a_fleet_at_work(release: Release, tmp_path: Path) -> None:
    try:
        release.prepare()
        upgraded = plane("sqlite", tmp_path.resolve() / "plane")
    except (LayerError, ReleaseError) as error:
        pytest.skip(str(error))
    rounds = Rounds(upgraded, SEED, [release], changes=1.0, going_back=1.0)

    figures = asyncio.run(rounds.run(FAULTS, lambda _: None))

    assert figures.problems == []
    version = release.version
    assert figures.faults[f"downgrade to {version}"] == 1
    assert figures.faults[f"upgrade from {version}"] >= 1
    assert figures.faults[f"downgrade to {version} with its backup"] >= 1


def test_the_source_of_a_release_is_needed() -> None:
    with pytest.raises(ReleaseError, match="a clone with its history"):
        Release("0.0.0", "0" * 40).prepare()


def saved() -> Saved:
    """Return a backup that began after the first of two writes of A, and before B was created."""
    journal = Journal()
    for write in (Write(A, "MODIFIED", 2), Write(A, "MODIFIED", 3), Write(B, "ADDED", 4)):
        journal.send(write)
        journal.acknowledge(write, 0)
        if write.number == 2:
            acknowledged = marked(journal)
    journal.send(Write(A, "DELETED", 3))
    before = {A: Event("ADDED", A, 10, 1)}
    return Saved(Path("saved"), CURRENT, 10, before, journal, acknowledged)


def listed(**numbers: int) -> dict[str, Any]:
    names = {"a": A, "b": B}
    items = []
    for key, number in numbers.items():
        item = body(names[key], number)
        item["metadata"] |= {"namespace": names[key].namespace}
        items.append(item)
    return {"items": items}


RESTORED = {
    "as it was at the beginning of the backup": (listed(a=2), 0),
    "with later writes": (listed(a=3, b=4), 0),
    "with a deletion in doubt": (listed(b=4), 0),
    "from before the backup": (listed(a=1), 1),
    "with a write of nobody": (listed(a=2, b=5), 1),
}


@pytest.mark.parametrize(("content", "problems"), RESTORED.values(), ids=RESTORED)
def test_what_a_restored_backup_may_have(content: dict[str, Any], problems: int) -> None:
    assert len(list(saved().problems(content))) == problems


ONE = Held("1", "node-0000", "Running", (("d", "p", "gpu-0"),))
TWO = Held("2", "node-0000", "Running", (("d", "p", "gpu-1"),))
FLEETS = {
    "as it was": ({"one": ONE, "two": TWO}, []),
    "a pod more": ({"one": ONE, "two": TWO, "three": Held("3", "", "Pending", ())}, []),
    "a pod lost": ({"one": ONE}, ["pod two was"]),
    "a pod recreated": ({"one": ONE, "two": TWO._replace(uid="9")}, ["pod two was"]),
    "a pod rescheduled": ({"one": ONE, "two": TWO._replace(node="node-0001")}, ["pod two was"]),
    "a device lost": ({"one": ONE, "two": TWO._replace(devices=())}, ["pod two was"]),
    "a device twice": (
        {"one": ONE, "two": TWO, "three": TWO._replace(uid="3")},
        ["the device d/p/gpu-1 is allocated to 2 pods"],
    ),
}


@pytest.mark.parametrize(("holders", "problems"), FLEETS.values(), ids=FLEETS)
def test_what_may_happen_to_a_fleet(holders: dict[str, Held], problems: list[str]) -> None:
    result = list(differences({"one": ONE, "two": TWO}, holders))

    assert len(result) == len(problems)
    assert all(text.startswith(start) for text, start in zip(result, problems, strict=True))
