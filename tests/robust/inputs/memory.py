"""How much memory a process takes."""

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
        """Return the most there was at once since the beginning, in MiB."""
        return self._read("VmHWM:") - self._before
