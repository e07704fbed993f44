"""The entry point: `sully COMMAND …`. Commands are imported only when they run."""

import argparse
import gc
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from sully import __version__
from sully.cli.helptext import HelpFormatter
from sully.cli.parsing import CommandParser, Parser, command_first, help_first
from sully.cli.process import finished, open_streams

# name → (module, one line for the overview)
COMMANDS = {
    "backup": ("sully.cli.data.backup", "save everything into one file, also while it runs"),
    "capabilities": (
        "sully.cli.run.capabilities",
        "show what a server offers, and what runs there",
    ),
    "completion": ("sully.cli.completion", "print what lets a shell complete commands and flags"),
    "controllers": ("sully.cli.run.controllers", "run controllers beside an API server"),
    "devices": ("sully.cli.inspect.devices", "show devices, their taints and their users"),
    "evictions": (
        "sully.cli.inspect.evictions",
        "follow, pause and resume evictions by taint rules",
    ),
    "explain": ("sully.cli.inspect.explain", "say why something is as it is, and what would help"),
    "history": ("sully.cli.inspect.history", "tell what was tainted, by whom, and what left"),
    "install": (
        "sully.cli.run.install",
        "bring kinds, rights and controllers to a Kubernetes cluster",
    ),
    "kubeconfig": ("sully.cli.run.kubeconfig", "let a user in: issue a client certificate"),
    "migrate": ("sully.cli.data.migrate", "copy everything from one kind of store into another"),
    "plan": ("sully.cli.change.plan", "show what a change would do, before it happens"),
    "restore": ("sully.cli.data.restore", "bring a data directory back from a backup"),
    "snapshot": ("sully.cli.inspect.snapshot", "save what other commands need into a file"),
    "taint": (
        "sully.cli.change.taint",
        "mark devices or clusters, after showing what that would do",
    ),
    "untaint": ("sully.cli.change.untaint", "take taints off devices or clusters"),
    "up": ("sully.cli.run.up", "run a control plane in this process"),
    "version": ("sully.cli.version", "show the version of this program"),
}
_PARTS = {
    "seeing": "see and explain",
    "acting": "preview and act",
    "running": "run a control plane, or controllers",
    "keeping": "keep its data safe",
    "": "besides",
}
"""Folder of a command → what its commands are for, in the order of the overview."""
_EPILOG = """\
examples:
  sully up                          a control plane on https://127.0.0.1:8443
  sully up --data-dir ./d --listen 127.0.0.1:0
  export KUBECONFIG=$PWD/d/kubeconfig
  sully devices --tainted           which devices have taints, from whom, and who uses them
  sully evictions --watch           which pods have to leave, and how far that is

'sully COMMAND --help' tells more about one command.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = help_first(sys.argv[1:] if arguments is None else arguments)
    given = command_first(words, COMMANDS)
    name = given[0] if given and given[0] in COMMANDS else ""
    parser = build_parser(name)
    options = parser.parse_args(given)
    if not getattr(options, "run", None):
        parser.print_help()
        return 2
    return int(options.run(options))


def build_parser(chosen: str) -> argparse.ArgumentParser:
    """Return the parser of everything, with the flags of one command."""
    parser = Parser(
        prog=_name(),
        usage="%(prog)s COMMAND … [-h] [--version]",
        description=f"Taints and tolerations for devices and clusters.\n\n{overview()}",
        epilog=_EPILOG,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sully {__version__}")
    commands = parser.add_subparsers(
        prog=_name(), metavar="COMMAND", help=argparse.SUPPRESS, parser_class=CommandParser
    )
    for name, (module, _) in COMMANDS.items():
        command = commands.add_parser(name, formatter_class=HelpFormatter)
        if name == chosen:
            loaded = importlib.import_module(module)
            loaded.configure(command)
            command.set_defaults(run=loaded.run)
    return parser


def overview() -> str:
    """Return all commands, by what they are for; argparse knows only one list of them."""
    lines: dict[str, list[str]] = {part: [] for part in _PARTS}
    for name, (module, text) in COMMANDS.items():
        folder = module.split(".")[2]
        lines[folder if folder in lines else ""].append(f"  {name:<13} {text}")
    return "\n".join("\n".join([f"{_PARTS[part]}:", *some]) for part, some in lines.items())


def _name() -> str:
    """Return how the user calls us: kubectl runs what is called kubectl-sully as its own."""
    called = Path(sys.argv[0]).name if sys.argv else ""
    return "kubectl sully" if called.startswith("kubectl-sully") else "sully"


def program() -> int:
    """Run one command as a process of its own."""
    open_streams()
    code = finished(main)
    # What a command made dies with it; to look through all of it for garbage takes longer than
    # some commands do.
    gc.freeze()
    return code


if __name__ == "__main__":
    sys.exit(program())
