"""Plans against reality: what `sully plan` shows of random changes, and what the cluster does."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kube.agreement.constraints import constrained
from kube.agreement.pods import following
from kube.agreement.table import finished, percent_right, read_floor, table
from kube.agreement.trial import Trial, Tried
from kube.agreement.worlds import NODES, World, generate
from kube.process import Foreign
from sully.testing.remote import simulated_nodes

FLOOR = Path(__file__).parent / "agreement-floor.txt"
STOP = "1"
"""Long enough that a busy scheduler is not slower than pods that terminate."""
AT_A_TIME = 14
LEAST = 60
"""Changes that have to be tried on real Kubernetes."""
USUAL_SEED, USUAL_WORLDS = 1, 28
SEED = int(os.environ.get("SULLY_AGREEMENT_SEED", USUAL_SEED))
WORLDS = int(os.environ.get("SULLY_AGREEMENT_WORLDS", USUAL_WORLDS))


def tried_on(there: Foreign, worlds: Sequence[World], folder: Path) -> list[Tried]:
    nodes = ("--nodes", str(NODES), "--devices", "0", "--name-prefix", "agreement")
    delays = ("--start-seconds", "0", "--stop-seconds", STOP)
    names = [f"agreement-{number:04}" for number in range(NODES)]
    admin, flags = there.admin(), ("--stop-seconds", f"{STOP}s")
    with simulated_nodes(there.kubeconfig, *nodes, *delays), following(admin) as history:
        trial = Trial(there, admin, history, names, folder, plan_flags=flags)
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            return [item for tried in pool.map(trial.run, worlds) for item in tried]


def check(tried: Sequence[Tried], server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Print the table, and hold the agreement to its floor; other worlds have none."""
    usual = (SEED, WORLDS) == (USUAL_SEED, USUAL_WORLDS)
    share, floor = percent_right(tried), read_floor(FLOOR, server) if usual else 0.0
    with capsys.disabled():
        sys.stdout.write(f"\nplans against reality, {server}, seed {SEED}\n{table(tried)}\n")
        sys.stdout.write(f"floor: {floor:.0f} %, see {FLOOR.name}\n")
    assert share >= floor


@pytest.mark.e2e
@pytest.mark.kube
def test_plans_agree_with_kubernetes(
    kubernetes: Foreign, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tried = tried_on(kubernetes, generate(SEED, WORLDS), tmp_path)

    check(tried, "kubernetes", capsys)
    assert len(finished(tried)) >= min(LEAST, 2 * WORLDS)


@pytest.mark.e2e
@pytest.mark.kube
def test_plans_of_pods_with_constraints_agree_with_kubernetes(
    kubernetes: Foreign, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worlds = generate(SEED, 12, kinds=("Deployment", "Pod"), prefix="c")
    tried = tried_on(kubernetes, constrained(worlds, SEED), tmp_path)

    check(tried, "kubernetes-constraints", capsys)


@pytest.mark.e2e
def test_plans_agree_with_the_stand_in(
    stand_in: Foreign, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = ("Deployment", "Pod")
    tried = tried_on(stand_in, generate(SEED, 5, changes=2, kinds=kinds), tmp_path)

    check(tried, "stand-in", capsys)
