"""Turns the hits of probes into the data file of coverage.py, which then reports as always."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from coverage import Coverage, CoverageData
from coverage.parser import PythonParser

from probes.importer import compiled
from probes.instrument import OTHERWISE, Arc


def write(folder: Path, hits: Mapping[str, bytes]) -> float:
    """Write `.coverage` for all modules in a folder; return how much is covered, in percent."""
    measured = Coverage()
    measured.erase()
    add(measured.get_data(), sorted(folder.rglob("*.py")), hits)
    measured.get_data().write()
    with Path(os.devnull).open("w") as nowhere:
        return measured.report(file=nowhere)


def add(data: CoverageData, paths: Sequence[Path], hits: Mapping[str, bytes]) -> None:
    """Add what probes saw in some modules, also those that nobody imported."""
    data.add_arcs({str(path): _executed(path, hits.get(str(path), b"")) for path in paths})
    data.touch_files([str(path) for path in paths])


def _executed(path: Path, seen: bytes) -> set[Arc]:
    """Return the arcs of a module that were executed, as coverage.py expects them."""
    _, probes = compiled(path)
    executed = {arc for arcs, hit in zip(probes, seen, strict=False) if hit for arc in arcs}
    parser = PythonParser(text=path.read_text(), filename=str(path))
    parser.parse_source()
    targets = _targets(parser.arcs())
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
