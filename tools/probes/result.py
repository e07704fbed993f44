"""Turns the hits of probes into the data file of coverage.py, which then reports as always."""

from __future__ import annotations

import marshal
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from pathlib import Path

import coverage
from coverage import Coverage
from coverage.python import PythonFileReporter
from coverage.results import Numbers, analysis_from_file_reporter

from probes.importer import compiled, version
from probes.instrument import OTHERWISE, Arc

_Result = tuple[list[Arc], tuple[int, ...]]
"""The arcs of a module that were executed, and the numbers of its report."""


def write(folder: Path, hits: Mapping[str, bytes]) -> float:
    """Write `.coverage` for all modules in a folder; return how much is covered, in percent.

    Parsing is most of the work. The results are kept for the next run, and used for each module
    that has not changed and in which the probes saw the same.
    """
    measured = Coverage()
    measured.erase()
    cache = folder / "__pycache__" / "coverage-results"
    before, results = _load(cache), {}
    reused: dict[str, list[Arc]] = {}
    for path in sorted(folder.rglob("*.py")):
        name, seen = str(path), hits.get(str(path), b"")
        key = (*_settings(measured), *version(path), seen)
        if name in before and before[name][0] == key:
            results[name] = before[name]
            reused[name] = before[name][1][0]
        else:
            results[name] = key, add(measured, path, seen)
    measured.get_data().add_arcs(reused)
    measured.get_data().touch_files(reused)
    cache.write_bytes(marshal.dumps(results))
    return sum((Numbers(*numbers) for _, (_, numbers) in results.values()), Numbers()).pc_covered


def _load(cache: Path) -> dict[str, tuple[tuple[object, ...], _Result]]:
    return marshal.loads(cache.read_bytes()) if cache.exists() else {}


def _settings(measured: Coverage) -> tuple[object, ...]:
    """Return what changes the result of a module apart from the module."""
    options = ("exclude_lines", "exclude_also", "partial_branches", "partial_also", "precision")
    return (coverage.__version__, *(measured.get_option(f"report:{name}") for name in options))


def add(measured: Coverage, path: Path, seen: bytes) -> _Result:
    """Add what probes saw in a module, also if nobody imported it; return its result.

    As the report of coverage.py does, but a module is parsed once.
    """
    data, source = measured.get_data(), PythonFileReporter(str(path), measured)
    arcs = sorted(_executed(path, seen, source.arcs()))
    data.add_arcs({str(path): arcs})
    data.touch_file(str(path))
    precision = int(str(measured.get_option("report:precision")))
    return arcs, astuple(analysis_from_file_reporter(data, precision, source, str(path)).numbers)


def _executed(path: Path, seen: bytes, possible: Iterable[Arc]) -> set[Arc]:
    """Return the arcs of a module that were executed, as coverage.py expects them."""
    _, probes = compiled(path)
    executed = {arc for arcs, hit in zip(probes, seen, strict=False) if hit for arc in arcs}
    targets = _targets(possible)
    known = _targets(arc for arcs in probes for arc in arcs)
    return set(_resolved(executed, targets, known))


def _targets(arcs: Iterable[Arc]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set)
    for source, target in arcs:
        found[source].add(target)
    return found


def _resolved(
    executed: set[Arc], targets: Mapping[int, set[int]], known: Mapping[int, set[int]]
) -> Iterable[Arc]:
    for source, target in executed:
        if target != OTHERWISE:
            yield source, target
        else:
            for other in targets.get(source, set()) - known[source]:
                yield source, other
    # No probe can see where a `finally` or `with` continues: what was executed counts.
    lines = {line for arc in executed for line in arc}
    for line in lines & targets.keys():
        if len(targets[line]) > 1 and known[line] == {line}:
            yield from ((line, target) for target in targets[line])
