"""Writing files that must be whole or absent, and readable by nobody else."""

import os
from pathlib import Path


def write_private(path: Path, data: bytes) -> None:
    """Write a file with mode 0600, all at once: readers see the old one or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
