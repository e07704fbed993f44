"""How much memory and processor a process takes."""

import os
from pathlib import Path


class Memory:
    """What a process needs above what it had."""

    def __init__(self, pid: int) -> None:
        self._process = Path(f"/proc/{pid}")
        (self._process / "clear_refs").write_text("5")  # forget the highest
        self._before = self._read("VmRSS:")

    def _read(self, name: str) -> float:
        status = (self._process / "status").read_text()
        return int(status.split(name)[1].split()[0]) / 1024

    def needed(self) -> float:
        """Return the most there was together since the beginning, in MiB."""
        return self._read("VmHWM:") - self._before


class Processor:
    """How long a process has kept a processor busy, which other processes hardly change."""

    def __init__(self, pid: int) -> None:
        self._process = Path(f"/proc/{pid}")
        self._before = self._read()

    def _read(self) -> float:
        after_name = (self._process / "stat").read_text().rpartition(")")[2].split()
        user, system = after_name[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def seconds(self) -> float:
        """Return how long it was since the beginning."""
        return self._read() - self._before
