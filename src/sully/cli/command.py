"""Commands as click runs them, with kubectl's habits where click has others.

Help has the order of kubectl's: what the command does, examples, flags, usage. A usage error is one
line and a pointer to the help. A flag with an optional value (`--dry-run`) does not take the next
word as its value.

    @command("devices", usage="[PATTERN...] [flags]", help="List devices ...", examples="...")
    @click.option("--tainted", is_flag=True, help="List only devices with taints.")
    def devices(options: Options) -> int: ...
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import click

from sully.cli.output.text import did_you_mean

Options = SimpleNamespace
"""The values of all flags and arguments of a command."""
HELP_NAMES = ("-h", "--help")
SETTINGS = {"help_option_names": list(HELP_NAMES), "max_content_width": 100}
USAGE_ERROR = 2
"""The exit code of a command line that cannot be parsed."""

_JSON = "use -o json"
_JQ = "use -o json with jq"
_KUBECONFIG = "set it in the kubeconfig"
_KUSTOMIZE = "use 'kubectl kustomize DIR | sully plan -f -'"
_APPLY = "use 'kubectl apply -f' to apply files, 'sully plan -f' to preview them"
_ALTERNATIVES = {
    "-l": _JQ,
    "--selector": _JQ,
    "--field-selector": _JQ,
    "--sort-by": _JQ,
    "--no-headers": _JSON,
    "--template": _JSON,
    "-s": _KUBECONFIG,
    "--server": _KUBECONFIG,
    "--token": _KUBECONFIG,
    "--user": _KUBECONFIG,
    "-k": _KUSTOMIZE,
    "--kustomize": _KUSTOMIZE,
    "-f": _APPLY,
    "--filename": _APPLY,
    "--pod-selector": "all pods that use the devices are evicted; select other devices",
    "--disable-eviction": "budgets are broken only by --timeout DURATION --then NoExecute",
    "--skip-wait-for-delete-timeout": "use --timeout",
    "--grace-period": "pods are evicted with their own grace period",
    "--delete-emptydir-data": "only 'sully drain' asks before it evicts pods with emptyDir volumes",
}
"""What to use where kubectl has a flag that a command lacks."""
TEMPLATES = ("jsonpath=", "custom-columns=")
"""How output formats begin that print parts of what JSON has (output/templates.py)."""
_TEMPLATES = ("name", "jsonpath", "custom-columns", "go-template")
"""Output formats of kubectl that print parts of objects."""


class CommandError(Exception):
    """A command failed; the text names the object and the remedy."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class Choice(click.Choice[str]):
    """One of several values; the error lists them and suggests the closest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        known = [str(choice) for choice in self.choices]
        if value in known:
            return str(value)
        if not self.case_sensitive:
            for choice in known:
                if choice.lower() == str(value).lower():
                    return choice
        hint = did_you_mean(str(value), known)
        if not hint and "json" in known and str(value).startswith(_TEMPLATES):
            hint = f"; {_JSON}"
        listed = ", ".join(known)
        raise click.BadParameter(f'unknown value "{value}" (one of: {listed}){hint}')


class ActionOrName(Choice):
    """An action, or the name of one object to list; `action_and_names` finds out which."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        # Only together with the other arguments it is known which.
        return str(value)


def action_and_names(
    action: str, names: tuple[str, ...], known: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """Return the action and its arguments; a single argument that is not an action is listed."""
    if action in known:
        return action, names
    hint = did_you_mean(action, known)
    if hint or names:
        text = f'unknown value "{action}" (one of: {", ".join(known)}){hint}'
        raise CommandError(text, code=USAGE_ERROR)
    return "list", (action,)


class Command(click.Command):
    """A command with examples in its help."""

    def __init__(
        self,
        *args: Any,
        usage: str = "[flags]",
        examples: str = "",
        **settings: Any,
    ) -> None:
        super().__init__(*args, **{"context_settings": SETTINGS, **settings})
        self.usage = usage
        self.examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse flags and arguments in any order; refuse what is left."""
        ctx.allow_extra_args = True
        try:
            rest = super().parse_args(ctx, list(self.expanded(args)))
        except click.UsageError as error:
            # click sets it for most errors, but not where a flag has no value, or one too many.
            error.ctx = error.ctx or ctx
            raise
        if rest and not ctx.resilient_parsing:
            raise click.UsageError(f"unexpected argument: {' '.join(rest)}", ctx)
        return rest

    def expanded(self, args: Sequence[str]) -> Iterator[str]:
        """Yield arguments with optional values written out."""
        optional = {
            name: f"{name}={param.flag_value}"
            for param in self.params
            if isinstance(param, click.Option)
            and isinstance(param.flag_value, str)
            and not param.is_flag
            for name in param.opts
        }
        for arg in args:
            yield optional.get(arg, arg)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command with its options as one value."""
        if self.callback is None:
            raise TypeError(f"{self.name} has no callback")
        return self.callback(Options(**ctx.params))

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_help_text(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples.strip("\n").splitlines():
                    formatter.write(f"{'':{formatter.current_indent}}{line}".rstrip() + "\n")
        self.format_options(ctx, formatter)
        with formatter.section("Usage"):
            for usage in self.usage.splitlines() or ("",):
                line = f"{'':{formatter.current_indent}}{ctx.command_path} {usage}"
                formatter.write(line.rstrip() + "\n")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does, without an indent."""
        formatter.write_text(self.help or "")


def command(name: str, **settings: Any) -> Callable[[Callable[[Options], int]], Command]:
    return click.command(name, cls=Command, **settings)


def follow_log_format(arguments: Sequence[str]) -> None:
    """Write JSON lines if a command line asks for them, before it is parsed or if it cannot be."""
    flag = "--log-format"
    if f"{flag}=json" in arguments or (flag, "json") in pairwise(arguments):
        from sully.runtime.log import configure

        configure("json")


def report_error(text: str, hint: str = "") -> None:
    """Print why a command failed, and where to read more; or log it where logs are JSON lines."""
    from sully.runtime.log import get_logger, is_json

    if is_json():
        get_logger("sully").error("command failed", error=text)
    else:
        print("\n".join(filter(None, (f"error: {text}", hint))), file=sys.stderr)


def report_warning(text: str) -> None:
    """Print a warning, or log it where logs are JSON lines."""
    from sully.runtime.log import get_logger, is_json

    if is_json():
        get_logger("sully").warning(text)
    else:
        print(f"warning: {text}", file=sys.stderr)


def usage_error(error: click.UsageError) -> tuple[str, str]:
    """Return what is wrong with a command line, and where to read more."""
    path = error.ctx.command_path if error.ctx is not None else "sully"
    return _message(error), help_hint(path)


def help_hint(path: str) -> str:
    return f"See '{path} --help' for usage."


def _message(error: click.UsageError) -> str:
    match error:
        case click.NoSuchOption(option_name=flag):
            return f"unknown flag: {flag}{_alternative(flag, error.ctx)}"
        case click.BadOptionUsage(option_name=flag):
            takes = _takes_value(flag, error.ctx)
            return f"flag needs an argument: {flag}" if takes else f"flag takes no value: {flag}"
        case click.MissingParameter(param=click.Option() as option):
            return f"required flag {option.opts[0]} not set"
        case click.MissingParameter(param=click.Parameter() as param):
            return f"missing argument: {param.human_readable_name}"
        case click.BadParameter(param=click.Option() as option):
            return f"{max(option.opts, key=len)}: {error.message}"
        case _:
            # Texts of click are sentences.
            return error.message[:1].lower() + error.message[1:].removesuffix(".")


def _takes_value(flag: str, ctx: click.Context | None) -> bool:
    options = ctx.command.params if ctx is not None else ()
    return not any(
        isinstance(option, click.Option)
        and (option.is_flag or option.count)
        and flag in (*option.opts, *option.secondary_opts)
        for option in options
    )


def _alternative(flag: str, ctx: click.Context | None) -> str:
    if ctx is not None and ctx.info_name == "explain" and flag in ("-l", "--selector"):
        return "; use names: sully explain $(kubectl get pods -l LABELS -o name)"
    known = [] if ctx is None else [opt for param in ctx.command.params for opt in param.opts]
    # First: what kubectl calls so may be the name of something else here.
    return f"; {_ALTERNATIVES[flag]}" if flag in _ALTERNATIVES else did_you_mean(flag, known)
