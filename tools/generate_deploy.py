"""Writes the kustomize folders under deploy/ from src/sully/install. `make generate` runs it."""

import sys
from pathlib import Path

from sully.install.folders import files

FOLDER = Path(__file__).resolve().parent.parent / "deploy"


def main() -> int:
    """Write the files that are missing or differ."""
    for path, text in files().items():
        target = FOLDER / path
        if not target.exists() or target.read_text() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            print(f"written: deploy/{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
