"""Probes see the lines and branches that the tracer of coverage.py sees."""

from __future__ import annotations

import os
import textwrap
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage, CoverageData
from coverage.results import Numbers

from probes import importer, result

CASES = {
    "a condition that holds": ("if x:\n    y = 1\nreturn 2", [True]),
    "a condition that does not": ("if x:\n    y = 1\nreturn 2", [False]),
    "both": ("if x:\n    y = 1\nreturn 2", [True, False]),
    "alternatives": ("if x == 1:\n    y = 1\nelif x == 2:\n    y = 2\nelse:\n    y = 3", [1, 2]),
    "a condition of several lines": ("if (\n    x\n    and x > 1\n):\n    y = 1", [2]),
    "a condition at the end": ("for _ in [1]:\n    if x:\n        y = 1", [False]),
    "a loop": ("for y in x:\n    z = y\nreturn 1", [[1]]),
    "a loop without a turn": ("for y in x:\n    z = y\nreturn 1", [[]]),
    "a loop that is left": ("for y in x:\n    if y:\n        break\nelse:\n    z = 1", [[1]]),
    "a loop that is not": ("for y in x:\n    if y:\n        break\nelse:\n    z = 1", [[0]]),
    "a loop with a condition": ("while x:\n    x -= 1\nreturn x", [2]),
    "a loop without an end": ("while True:\n    x -= 1\n    if x < 0:\n        return", [2]),
    "a return": ("if x:\n    return 1\nreturn 2", [True]),
    "an exception that is caught": (
        "try:\n    y = 1 / x\nexcept TypeError:\n    y = 2\nexcept ZeroDivisionError:\n    y = 3",
        [0],
    ),
    "no exception": ("try:\n    y = 1 / x\nexcept TypeError:\n    y = 2\nelse:\n    y = 3", [1]),
    "an exception that is not caught": ("y = 1 / x\nz = 2", [0]),
    "at last": ("try:\n    y = x\nfinally:\n    z = 1\nreturn z", [0]),
    "the first case": ("match x:\n    case 1:\n        y = 1\n    case 2:\n        y = 2", [1]),
    "the second case": ("match x:\n    case 1:\n        y = 1\n    case 2:\n        y = 2", [2]),
    "no case": ("match x:\n    case 1:\n        y = 1\n    case 2:\n        y = 2\nreturn", [3]),
    "the last case": ("match x:\n    case 1:\n        y = 1\n    case _:\n        y = 2", [3]),
    "a case with a condition": ("match x:\n    case y if y > 1:\n        y = 1\nreturn", [0, 3]),
    "a decorated function": ("@str\n@repr\ndef y():\n    return 1\nreturn y", [0]),
    "a docstring": ('def y():\n    """Text."""\n    return 1\nreturn y()', [0]),
    "a name of another scope": ("def y():\n    nonlocal x\n    x = 1\ny()\nreturn x", [0]),
    "a block": ("with open(x) as y:\n    z = y\nreturn", ["/dev/null"]),
}


@pytest.mark.parametrize(("body", "arguments"), CASES.values(), ids=CASES.keys())
def test_as_the_tracer_sees_it(body: str, arguments: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    text = f'"""Text."""\n\nfrom __future__ import annotations\n\n\ndef f(x):\n{_indented(body)}\n'
    path.write_text(text)
    tracer, probes = (Coverage(data_file=None, branch=True, config_file=False) for _ in range(2))

    with tracer.collect():
        _call(compile(text, path, "exec"), arguments)
    code, _ = importer.compiled(path)
    _call(code, arguments)
    seen = bytes(importer.hits(str(path), 0))
    _, numbers = result.add(probes, path, seen)

    assert probes.analysis2(str(path)) == tracer.analysis2(str(path))
    assert probes.branch_stats(str(path)) == tracer.branch_stats(str(path))
    assert Numbers(*numbers).pc_covered == tracer.report([str(path)], file=StringIO())


def _indented(body: str) -> str:
    return textwrap.indent(body, "    ")


def _call(code: Any, arguments: list[Any]) -> None:
    names: dict[str, Any] = {}
    exec(code, names)
    for argument in arguments:
        try:
            names["f"](argument)
        except ZeroDivisionError:
            continue


def test_processes_add_to_one_file(tmp_path: Path) -> None:
    importer.hits("/first", 3)[0] = 1
    importer.save(tmp_path / "hits")
    importer.hits("/first", 3)[:] = [0, 0, 1]
    importer.save(tmp_path / "hits")

    assert importer.load(tmp_path / "hits")["/first"] == b"\1\0\1"
    assert importer.load(tmp_path / "none") == {}


def test_a_result_is_reused_until_something_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # `.coverage` is written there
    folder = tmp_path / "src"
    cache = folder / "__pycache__" / "coverage-results"
    module, other = folder / "module.py", folder / "other.py"
    cache.parent.mkdir(parents=True)
    module.write_text("x = 1\nif x:\n    y = 2\n")
    other.write_text("x = 1\n")

    def write(seen: bytes) -> tuple[float, list[tuple[int, int]]]:
        total = result.write(folder, {str(module): seen, str(other): b"\1"})
        data = CoverageData(".coverage")
        data.read()
        assert data.measured_files() == {str(module), str(other)}
        return total, sorted(data.arcs(str(module)) or ())

    some, all_ = b"\1\1" + bytes(9), b"\1" * 11
    first, more = write(some), write(all_)

    assert first[0] < more[0]
    assert write(all_) == more
    assert write(some) == first
    times = module.stat().st_atime_ns, module.stat().st_mtime_ns
    module.write_text("x = 1\n".ljust(module.stat().st_size))
    os.utime(module, ns=times)
    assert write(some) == first  # of the same size and time, so it is not parsed
    os.utime(module)
    assert write(some)[0] == 100
