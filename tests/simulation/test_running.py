"""Results of seeds in a file: an interrupted run continues where it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.mutating import Detection, with_table
from simulator.running import Figures, Results, ResumeError, run_seeds

SEED = Figures(7, 80.0, 3000, 200, 2, 1, 0.1)


def test_seeds_that_were_run_are_not_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new" / "seeds.jsonl"
    Results(path, 0.1).add(SEED)
    Results(path, 0.1).add(Figures(8, 80.0, 3000, 200, 2, 1, 0.1, "durable"))

    assert run_seeds((7, 8), scale=0.1, jobs=1, resume=path) == [8]

    shown = capsys.readouterr().out
    assert "2 of 2 seeds were run before" in shown
    assert "steps of tasks           6000" in shown


def test_results_of_another_scale_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "seeds.jsonl"
    Results(path, 0.1).add(SEED)

    with pytest.raises(ResumeError, match="other code or another scale"):
        Results(path, 1.0)


def test_without_a_file_nothing_is_known() -> None:
    results = Results(None, 1.0)
    results.add(SEED)

    assert results.known == []


def test_the_table_of_planted_faults_is_replaced() -> None:
    page = (
        "# P\n\n## Planted faults\n\nText.\n\n| planted fault | found by |\n|---|---|\n| a | b |\n"
    )
    result = {
        "do not flush": Detection(3, steps=120, promise="durable"),
        "never retry": Detection(200, 0.04),
    }

    assert with_table(page, result).partition("Text.\n")[2] == (
        "\n| planted fault | seed | steps | promise |\n|---|---|---|---|\n"
        "| do not flush | 3 | 120 | durable |\n| never retry | 200 --scale 0.04 | 0 | NOT FOUND |\n"
    )
