"""The figures of benchmarks are kept with facts about the machine, and compared."""

import importlib.util
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def recording() -> Any:
    spec = importlib.util.spec_from_file_location("recording", ROOT / "bench/recording.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_run_is_compared_with_the_last_one_that_has_the_figure(tmp_path: Path) -> None:
    record = recording().record
    first = record("api", {"GET per second": 100.0}, tmp_path)
    record("api", {"LIST ms": 4.0, "nothing": 0.0}, tmp_path)
    last = record("api", {"GET per second": 150.0, "LIST ms": 2.0, "nothing": 1.0}, tmp_path)

    assert len(first) == 1
    assert [line.split()[0] for line in last[1:]] == ["GET", "LIST"]
    assert "1.50x" in last[1]
    assert "0.50x" in last[2]


def test_a_run_has_facts_about_the_machine(tmp_path: Path) -> None:
    module = recording()
    for number in range(module.MAX_RUNS + 2):
        module.record("api", {"GET": float(number)}, tmp_path)

    runs = json.loads((tmp_path / "api.json").read_text())
    assert len(runs) == module.MAX_RUNS
    assert runs[-1]["figures"] == {"GET": module.MAX_RUNS + 1.0}
    assert {"cpu", "cores", "load", "system", "python"} <= runs[-1]["machine"].keys()
