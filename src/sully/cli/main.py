"""The entry point: `sully COMMAND …`. Commands are imported only when they run."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from sully import __version__

# name → (module, one line for the overview)
COMMANDS = {
    "backup": ("sully.cli.backup", "save everything into one file, also while it runs"),
    "kubeconfig": ("sully.cli.kubeconfig", "let a user in: issue a client certificate"),
    "restore": ("sully.cli.restore", "bring a data directory back from a backup"),
    "up": ("sully.cli.up", "run a control plane in this process"),
    "version": ("sully.cli.version", "show the versions of this program and of a server"),
}
_EPILOG = """\
examples:
  sully up                          a control plane on https://127.0.0.1:8443
  sully up --data-dir ./d --listen 127.0.0.1:0
  kubectl --kubeconfig ./d/kubeconfig get devicetaintrules

'sully COMMAND --help' tells more about one command.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name = given[0] if given and given[0] in COMMANDS else ""
    parser = _parser(name)
    options = parser.parse_args(given)
    if not getattr(options, "run", None):
        parser.print_help()
        return 2
    return int(options.run(options))


def _parser(chosen: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sully",
        description="Taints and tolerations for devices and clusters.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sully {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name, (module, text) in COMMANDS.items():
        command = commands.add_parser(
            name, help=text, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name == chosen:
            loaded = importlib.import_module(module)
            loaded.configure(command)
            command.set_defaults(run=loaded.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
