"""The entry point: `sully COMMAND ...`. Commands are imported only when they run."""

import gc
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from sully import __version__
from sully.cli.command import (
    SETTINGS,
    USAGE_ERROR,
    Command,
    CommandError,
    follow_log_format,
    help_hint,
    report_error,
    usage_error,
)
from sully.cli.output.text import did_you_mean
from sully.cli.process import finished, open_streams


class CommandEntry(NamedTuple):
    """Where a command is, and its line in the list of commands."""

    module: str
    group: str
    summary: str


COMMANDS = {
    "devices": CommandEntry(
        "inspect.devices.command", "Inspect", "List devices with their taints and pods"
    ),
    "doctor": CommandEntry("doctor.doctor", "Inspect", "Check an installation"),
    "evictions": CommandEntry(
        "inspect.evictions.command", "Inspect", "List, pause and resume evictions"
    ),
    "explain": CommandEntry("inspect.explain", "Inspect", "Explain the state of an object"),
    "history": CommandEntry("inspect.history.command", "Inspect", "List past taints and evictions"),
    "policies": CommandEntry(
        "inspect.policies.command", "Inspect", "List device policies, approve and clear"
    ),
    "rules": CommandEntry("inspect.rules", "Inspect", "List what taints devices, and its effects"),
    "snapshot": CommandEntry(
        "inspect.snapshot", "Inspect", "Save the state of a cluster to a file"
    ),
    "status": CommandEntry(
        "inspect.status", "Inspect", "Show the state of all devices on one screen"
    ),
    "cordon": CommandEntry("change.drain.cordon", "Change", "Prevent scheduling on devices"),
    "drain": CommandEntry(
        "change.drain.drain", "Change", "Cordon devices and evict the pods on them"
    ),
    "maintenance": CommandEntry(
        "change.maintenance.maintenance", "Change", "Plan and control work on devices"
    ),
    "plan": CommandEntry("change.plan.plan", "Change", "Preview the effects of a change"),
    "signal": CommandEntry("change.signal", "Change", "Report a fault of devices"),
    "taint": CommandEntry("change.taint.taint", "Change", "Taint devices or clusters"),
    "uncordon": CommandEntry(
        "change.drain.uncordon", "Change", "Allow scheduling on devices again"
    ),
    "untaint": CommandEntry(
        "change.taint.untaint", "Change", "Remove taints from devices or clusters"
    ),
    "backup": CommandEntry("data.backup", "Data", "Back up a data directory to a file"),
    "migrate": CommandEntry("data.migrate", "Data", "Copy all objects from one store to another"),
    "restore": CommandEntry("data.restore", "Data", "Restore a data directory from a backup"),
    "capabilities": CommandEntry("run.capabilities", "Run", "Show what an API server supports"),
    "controllers": CommandEntry("run.controllers", "Run", "Run controllers against an API server"),
    "dashboard": CommandEntry(
        "run.dashboard", "Run", "Show devices and evictions in a web browser"
    ),
    "envtest-assets": CommandEntry(
        "run.envtest.assets", "Run", "Write programs for KUBEBUILDER_ASSETS of envtest"
    ),
    "install": CommandEntry("run.install.command", "Run", "Install Sully in a Kubernetes cluster"),
    "kubeconfig": CommandEntry("run.kubeconfig", "Run", "Create a kubeconfig for a user"),
    "monitor": CommandEntry("run.monitor", "Run", "Report the health of the devices of this node"),
    "signal-receiver": CommandEntry(
        "run.signal_receiver", "Run", "Receive alerts and other signals about devices"
    ),
    "simulate-nodes": CommandEntry(
        "run.simulate_nodes", "Run", "Simulate nodes with devices on an API server"
    ),
    "up": CommandEntry("run.up.command", "Run", "Run a control plane in this process"),
    "completion": CommandEntry("completion", "Other", "Print a shell completion script"),
    "version": CommandEntry("version", "Other", "Print the version"),
}
_KUBECTL = ("apply", "create", "delete", "edit", "exec", "get", "label", "logs", "patch", "rollout")
"""Commands that only kubectl has."""
_UNKNOWN = "sully.unknown-command"
_HELP = "Sully manages taints and tolerations for devices and clusters."
_EXAMPLES = """\
# Run a control plane on https://127.0.0.1:8443
sully up

# List devices with taints, where each taint comes from, and which pods use them
export KUBECONFIG=$PWD/data/kubeconfig
sully devices --tainted

# Preview a taint, then set it
sully plan device 'gpu.example.com/node-7/*' example.com/hot:NoExecute
sully taint device 'gpu.example.com/node-7/*' example.com/hot:NoExecute
"""


class Program(click.Group):
    """All commands.

    kubectl takes some flags before the command, too. Those are options of the program here, and
    passed on to the command.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:
        return load(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command and its arguments, the flags before it included."""
        name, *rest = args
        if name not in COMMANDS and not ctx.resilient_parsing:
            hint = did_you_mean(name, COMMANDS) or _instead_of_kubectl(name, rest)
            raise click.UsageError(f'unknown command "{name}"{hint}', ctx)
        if name not in COMMANDS:
            ctx.meta[_UNKNOWN] = name
        return name, self.get_command(ctx, name), [*_early(ctx), *rest]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Return commands and flags; importing each command for its help would take too long."""
        from click.shell_completion import CompletionItem

        if _UNKNOWN in ctx.meta:
            return []
        items = [CompletionItem(name) for name in COMMANDS if name.startswith(incomplete)]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write all commands by group, then examples."""
        formatter.write_text(_HELP)
        for group in dict.fromkeys(entry.group for entry in COMMANDS.values()):
            with formatter.section(f"{group} Commands"):
                rows = [
                    (name, entry.summary)
                    for name, entry in COMMANDS.items()
                    if entry.group == group
                ]
                formatter.write_dl(rows, col_spacing=17 - max(len(name) for name, _ in rows))
        with formatter.section("Examples"):
            for line in _EXAMPLES.splitlines():
                formatter.write(f"  {line}".rstrip() + "\n")
        self.format_options(ctx, formatter)
        with formatter.section("Usage"):
            formatter.write(f"  {ctx.command_path} COMMAND [flags]\n")
        formatter.write(f"\nUse '{ctx.command_path} COMMAND --help' for help about a command.\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags of the program itself: commands document those that are passed on."""
        records = [param.get_help_record(ctx) for param in self.get_params(ctx)[-2:]]
        with formatter.section("Options"):
            formatter.write_dl([record for record in records if record is not None])


def load(name: str) -> Command:
    module = importlib.import_module(f"sully.cli.{COMMANDS[name].module}")
    command: Command = getattr(module, name.replace("-", "_"))
    return command


def _instead_of_kubectl(verb: str, rest: list[str]) -> str:
    """Return what to type where kubectl has the command: `get` and `describe` of what we list."""
    listed = next(iter(rest), "")
    if verb == "get" and (name := _listing(listed)):
        return f"; use 'sully {name}'"
    if verb == "describe":
        return "; use 'sully explain KIND NAME'"
    return f"; use 'kubectl {verb}'" if verb in _KUBECTL else ""


def _listing(word: str) -> str | None:
    """Return the command that lists what an argument names, in the singular or in the plural."""
    plurals = (word, f"{word}s", word.removesuffix("y") + "ies")
    return next((name for name in plurals if word and name in COMMANDS), None)


def _early(ctx: click.Context) -> list[str]:
    arguments: list[str] = []
    for param in ctx.command.params:
        if ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE:
            value = ctx.params.get(param.name, ())
            for text in value if isinstance(value, tuple) else (value,):
                arguments += [param.opts[0], text]
    return arguments


def _early_options() -> list[click.Parameter]:
    from sully.cli.names import complete_contexts, complete_namespaces

    def option(*names: str, **settings: Any) -> click.Option:
        return click.Option(names, **settings)

    return [
        option("--kubeconfig", type=click.Path()),
        option("--context", shell_complete=complete_contexts),
        option("--as", "as_user"),
        option("--as-group", "as_groups", multiple=True),
        option("--namespace", "-n", shell_complete=complete_namespaces),
        option("--output", "-o"),
    ]


def root() -> Program:
    return Program(
        "sully",
        context_settings=SETTINGS,
        no_args_is_help=False,
        params=[
            *_early_options(),
            click.Option(
                ["--version"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_version,
                help="Print the version and exit.",
            ),
        ],
    )


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        print(f"sully {__version__}")
        ctx.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command in a process that continues after it."""
    collects = gc.isenabled()
    try:
        return _main(arguments)
    finally:
        if collects:
            gc.enable()


def _main(arguments: Sequence[str] | None = None) -> int:
    arguments = with_help_flag(sys.argv[1:] if arguments is None else arguments)
    sully = root()
    try:
        # Not `Program.main`: that handles signals and pipes differently from process.py.
        with sully.make_context(_name(), list(arguments)) as ctx:
            if not arguments:
                print(ctx.get_help())
                return USAGE_ERROR
            return _invoke(sully, ctx)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.UsageError as error:
        follow_log_format(arguments)
        report_error(*usage_error(error))
        return USAGE_ERROR


def _invoke(sully: Program, ctx: click.Context) -> int:
    try:
        return int(sully.invoke(ctx))
    except CommandError as error:
        usage = help_hint(f"{ctx.command_path} {ctx.invoked_subcommand}")
        report_error(str(error), usage if error.code == USAGE_ERROR else "")
        return error.code


def with_help_flag(arguments: Sequence[str]) -> list[str]:
    """Treat `help COMMAND` as `COMMAND --help`, and `help` alone as `--help`."""
    if not arguments or arguments[0] != "help":
        return list(arguments)
    return [*arguments[1:2], "--help"]


def _name() -> str:
    """Return how the user calls us: kubectl runs kubectl-sully as a plugin."""
    called = Path(sys.argv[0]).name if sys.argv else ""
    return "kubectl sully" if called.startswith("kubectl-sully") else "sully"


def program() -> int:
    """Run one command as a process of its own."""
    # Almost everything that a command imports and reads lives until its end.
    gc.set_threshold(50_000, 20, 100)
    open_streams()
    code = finished(_main)
    # A last garbage collection would take longer than some commands do.
    gc.freeze()
    return code


if __name__ == "__main__":
    sys.exit(program())
