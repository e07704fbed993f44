"""Turns the hits of probes into the data file of coverage.py, which then reports as always."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from coverage import Coverage
from coverage.python import PythonFileReporter
from coverage.results import Numbers, analysis_from_file_reporter

from probes.importer import compiled
from probes.instrument import OTHERWISE, Arc


def write(folder: Path, hits: Mapping[str, bytes]) -> float:
    """Write `.coverage` for all modules in a folder; return how much is covered, in percent."""
    measured = Coverage()
    measured.erase()
    paths = sorted(folder.rglob("*.py"))
    total = sum((add(measured, path, hits.get(str(path), b"")) for path in paths), Numbers())
    measured.get_data().write()
    return total.pc_covered


def add(measured: Coverage, path: Path, seen: bytes) -> Numbers:
    """Add what probes saw in a module, also if nobody imported it; return its numbers.

    As the report of coverage.py does, but a module is parsed once.
    """
    data, source = measured.get_data(), PythonFileReporter(str(path), measured)
    data.add_arcs({str(path): _executed(path, seen, source.arcs())})
    data.touch_file(str(path))
    precision = int(str(measured.get_option("report:precision")))
    return analysis_from_file_reporter(data, precision, source, str(path)).numbers


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
    # No probe can see where a `finally` or `with` goes on: what was executed counts.
    lines = {line for arc in executed for line in arc}
    for line in lines & targets.keys():
        if len(targets[line]) > 1 and known[line] == {line}:
            yield from ((line, target) for target in targets[line])
