"""Imports Sully with probes, and keeps what they saw.

The compiled modules are cached beside the usual ones, so that only the first process of a run
compiles. Several processes add to one file of hits.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType, ModuleType

from probes import instrument
from probes.instrument import Arc, instrumented

_Compiled = tuple[CodeType, list[list[Arc]]]
_hits: dict[str, list[int]] = {}
_version = os.stat(str(instrument.__file__)).st_mtime_ns


def hits(path: str, number: int) -> list[int]:
    """Return the list in which the probes of a module store a one."""
    return _hits.setdefault(path, [0] * number)


def start() -> None:
    """Add probes to all modules of Sully that are imported from now on."""
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "sully":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        return compiled(Path(self.get_filename(fullname)))[0]


def compiled(path: Path) -> _Compiled:
    """Return the code of a module with probes, and the arcs of each probe."""
    key, cache = version(path), Path(cache_from_source(str(path), optimization="probes"))
    if (cached := _cached(cache, key)) is not None:
        return cached
    # Workers of a run import the same modules at the same time: the first one compiles.
    with open(str(instrument.__file__), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _cached(cache, key) or _compile(path, cache, key)


def version(path: Path) -> tuple[int, ...]:
    """Return what changes when the code of a module with probes does."""
    stat = path.stat()
    return _version, stat.st_mtime_ns, stat.st_size


def _cached(cache: Path, key: tuple[int, ...]) -> _Compiled | None:
    if cache.exists():
        cached_key, code, arcs = marshal.loads(cache.read_bytes())
        if cached_key == key:
            return code, arcs
    return None


def _compile(path: Path, cache: Path, key: tuple[int, ...]) -> _Compiled:
    tree, arcs = instrumented(path.read_bytes(), str(path))
    code = compile(tree, path, "exec", dont_inherit=True)
    if not sys.dont_write_bytecode:
        cache.parent.mkdir(exist_ok=True)
        whole = cache.with_suffix(f".{os.getpid()}")
        whole.write_bytes(marshal.dumps((key, code, arcs)))
        whole.replace(cache)
    return code, arcs


def save(file: Path) -> None:
    """Add what this process executed to a file."""
    with file.open("a+b") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        opened.seek(0)
        merged = marshal.loads(opened.read() or marshal.dumps({}))
        for path, seen in _hits.items():
            before = merged.get(path, b"")
            both = int.from_bytes(before) | int.from_bytes(bytes(seen))
            merged[path] = both.to_bytes(len(seen))
        opened.truncate(0)
        opened.write(marshal.dumps(merged))


def load(file: Path) -> dict[str, bytes]:
    """Return what all processes executed: for each module one byte per probe."""
    return marshal.loads(file.read_bytes()) if file.exists() else {}
