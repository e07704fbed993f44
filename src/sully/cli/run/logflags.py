"""The flags of commands that keep running and therefore log."""

import argparse


def add_log_flags(parser: argparse.ArgumentParser) -> None:
    """Describe the flags."""
    parser.add_argument(
        "--log-format",
        default="console",
        choices=("console", "json"),
        help="logs for people or for programs (default: console)",
    )
    parser.add_argument(
        "--log-level",
        default="info",
        choices=("debug", "info", "warning", "error"),
        help="how much to log (default: info)",
    )
