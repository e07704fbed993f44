"""Writes the kustomize folders and the Helm chart under deploy/ from src/sully/install.

`make generate` runs it.
"""

import sys
from pathlib import Path

from sully.install import chart, folders

FOLDER = Path(__file__).resolve().parent.parent / "deploy"


def main() -> int:
    """Write the files that are missing or differ."""
    for path, text in (folders.files() | chart.files()).items():
        target = FOLDER / path
        if not target.exists() or target.read_text() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            print(f"written: deploy/{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
