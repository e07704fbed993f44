"""`sully version`: this program, and the API it speaks."""

import argparse

from sully import __version__


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Show the version of this program and of the API level it serves."


def run(_options: argparse.Namespace) -> int:
    """Print the versions."""
    print(f"sully {__version__} (serves the Kubernetes 1.37 API)")
    return 0
