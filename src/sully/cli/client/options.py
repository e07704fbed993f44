"""The flags that several commands share, named as kubectl names them."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sully.cli.command import TEMPLATES, Choice, Options
from sully.cli.names import complete_contexts, complete_namespaces

if TYPE_CHECKING:
    from sully.client.kubeconfig.kubeconfig import Impersonation

Decorator = Callable[[Any], Any]
TABLES = ("table", "wide")
NAMES = "name"
"""The output format that prints names only, one per line."""
OUTPUTS = (*TABLES, "json", "yaml")
READ_NAMESPACE = "Read only this namespace, if you may not list objects in all of them."
"""Help of `-n` where a whole cluster is read."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_LONGEST = 1000 * 365 * 86400.0
"""Of what is much longer, no date can be calculated."""


def options(*decorators: Decorator) -> Decorator:
    """Join flags, in the order in which help lists them."""

    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def client_options(
    *,
    namespace: str = "If present, only objects in this namespace.",
    everywhere: bool = True,
    outputs: Sequence[str] = OUTPUTS,
) -> Decorator:
    """Return the flags of commands that talk to a server.

    `namespace` is the help of `-n`, empty where there is none; `everywhere` adds `-A`.
    """
    flags: list[Decorator] = [connection_options, request_timeout_option]
    if namespace:
        flags.append(namespace_option(namespace, narrows=everywhere))
    if namespace and everywhere:
        flags.append(
            all_namespaces_option(
                "If present, use objects in all namespaces (the default). -n is ignored."
            )
        )
    if outputs:
        flags.append(output_option(outputs))
    return options(*flags)


def namespace_option(help_: str, *, narrows: bool = False) -> Decorator:
    """Return `-n`; where it `narrows`, an empty value is an error, not all namespaces."""
    flag = selecting_option if narrows else click.option
    return flag(
        "--namespace",
        "-n",
        default="",
        metavar="NS",
        shell_complete=complete_namespaces,
        help=help_,
    )


def all_namespaces_option(help_: str) -> Decorator:
    return click.option("--all-namespaces", "-A", is_flag=True, help=help_)


def choice_option(
    *names: str, choices: Sequence[str], help_: str, case_sensitive: bool = True, **overrides: Any
) -> Decorator:
    """Return a flag with one of several values; the first is the default."""
    settings = {"default": choices[0], "show_default": True, **overrides}
    listed = f"{help_} One of: {', '.join(choices)}."
    type_ = Choice(choices, case_sensitive=case_sensitive)
    return click.option(*names, type=type_, help=listed, **settings)


class OutputFormat(Choice):
    """One of several output formats, or a template where JSON is one of them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text.startswith(TEMPLATES) or "json" not in self.choices:
            return super().convert(value, param, ctx)
        from sully.cli.output.templates import check

        try:
            check(text)
        except ValueError as error:
            raise click.BadParameter(f"{text.partition('=')[0]}: {error}") from error
        return text


def output_option(outputs: Sequence[str]) -> Decorator:
    """Return `-o`; the first format is the default."""
    listed = (*outputs, *(f"{text}..." for text in TEMPLATES))
    return click.option(
        "--output",
        "-o",
        type=OutputFormat(outputs),
        default=outputs[0],
        show_default=True,
        metavar="FORMAT",
        help=f"Output format. One of: {', '.join(listed)}.",
    )


def evictor_option(help_: str, **overrides: Any) -> Decorator:
    choices = ("auto", "server", "sully")
    return choice_option("--evictor", choices=choices, metavar="EVICTOR", help_=help_, **overrides)


def compat_option(help_: str) -> Decorator:
    choices = ("sully", "reference")
    return choice_option("--compat", choices=choices, metavar="MODE", help_=help_)


def feature_gates_option(help_: str) -> Decorator:
    return click.option("--feature-gates", default="", metavar="A=true,B=false", help=help_)


def data_dir_option(help_: str) -> Decorator:
    """Return `--data-dir`, of commands that work on the files of a control plane."""
    return click.option(
        "--data-dir",
        type=click.Path(path_type=Path),
        default="data",
        show_default="./data",
        metavar="DIR",
        help=help_,
    )


def selecting_option(*names: str, **settings: Any) -> Decorator:
    """Return a flag that narrows what a command works on; an empty value is an error.

    It is what a shell makes of a variable that is not set. Without the error the command would
    work on everything that the other flags select.
    """
    return click.option(*names, callback=refuse_empty, **settings)


def refuse_empty(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Refuse an empty value of a flag, as the callback of its option."""
    is_set = ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE
    if is_set and not all(text.strip() for text in (value if param.multiple else [value])):
        raise click.BadParameter("the value is empty", ctx, param)
    return value


def duration_option(*names: str, default: str | None = None, **overrides: Any) -> Decorator:
    """Return a flag with a duration such as 15s."""
    settings = {"type": seconds, "metavar": "DURATION", "show_default": bool(default), **overrides}
    return click.option(*names, default=default, **settings)


connection_options = options(
    click.option(
        "--kubeconfig",
        default="",
        metavar="FILE",
        type=click.Path(),
        show_default="KUBECONFIG, ~/.kube/config, in-cluster",
        help="Path to the kubeconfig file to use.",
    ),
    click.option(
        "--context",
        default="",
        metavar="NAME",
        shell_complete=complete_contexts,
        help="The name of the kubeconfig context to use.",
    ),
    click.option(
        "--as",
        "as_user",
        default="",
        metavar="USER",
        help="Username to impersonate for the operation.",
    ),
    click.option(
        "--as-group",
        "as_groups",
        multiple=True,
        metavar="GROUP",
        help="Group to impersonate for the operation. Can be repeated.",
    ),
)


def server_flags(options_: Options) -> str:
    """Return the flags that name the server, to be appended to a command of sully or kubectl.

    Without them a command that is copied may change another cluster.
    """
    flags = {"--kubeconfig": options_.kubeconfig, "--context": options_.context}
    return "".join(f" {flag} {quote(value)}" for flag, value in flags.items() if value)


def parse_timeout(text: str) -> float:
    """Parse a timeout as kubectl does: a number without a unit is in seconds."""
    return min(float(text), _LONGEST) if text.isascii() and text.isdecimal() else seconds(text)


request_timeout_option = click.option(
    "--request-timeout",
    type=parse_timeout,
    metavar="DURATION",
    show_default="60s",
    help="The length of time to wait before giving up on a single server request. Non-zero values"
    " should contain a corresponding time unit (e.g. 1s, 2m, 3h). A value of zero means don't"
    " timeout requests.",
)
no_headers_option = click.option(
    "--no-headers", is_flag=True, help="When using a table output format, don't print headers."
)
watch_option = click.option(
    "--watch", "-w", is_flag=True, help="After listing the objects, watch for changes."
)
snapshot_option = click.option(
    "--snapshot",
    multiple=True,
    metavar="FILE",
    type=click.Path(),
    callback=refuse_empty,
    help="Read objects from a file written by 'sully snapshot' or 'kubectl get -o yaml' instead of"
    " a server. Use - for standard input. Can be repeated.",
)


def impersonation(options_: Options) -> "Impersonation":
    from sully.client.kubeconfig.kubeconfig import Impersonation

    return Impersonation(options_.as_user, tuple(options_.as_groups))


def seconds(text: str) -> float:
    """Parse a duration such as 15s, 500ms, 1m30s, 2h or 30d; for `type=` of a flag.

    What is longer than a thousand years is a thousand years.
    """
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise click.BadParameter(f'invalid duration "{text}" (for example 15s, 1m30s)')
    return min(sum(float(number) * _UNITS[unit] for number, unit in parts), _LONGEST)


def parse_address(flag: str, text: str, default_port: int) -> tuple[str, int]:
    """Parse HOST:PORT; without a host it is 127.0.0.1. Raises `ValueError`."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ValueError(f'{flag}: invalid address "{text}" (for example 127.0.0.1:{default_port})')
    return host.strip("[]") or "127.0.0.1", int(port)


def whole_number(minimum: int = 0, maximum: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers within bounds; for `type=` of a flag."""
    bounds = f"{minimum} or more" if maximum is None else f"{minimum} to {maximum}"

    def parse(text: str) -> int:
        # Not `int`, which also takes signs, spaces and underscores.
        number = int(text) if str(text).isdecimal() and len(str(text)) < 20 else -1
        if number < minimum or (maximum is not None and number > maximum):
            raise click.BadParameter(f'invalid number "{text}" (a whole number, {bounds})')
        return number

    return parse


def count_or_percentage(text: str) -> int | str:
    """Parse a number of pods, or a percentage as in a PodDisruptionBudget; for `type=`."""
    share = str(text).removesuffix("%")
    number = int(share) if share.isdecimal() and len(share) < 20 else 0
    if number < 1 or (share != text and number > 100):
        raise click.BadParameter(
            f'invalid number "{text}" (a whole number, 1 or more, or a percentage, 1% to 100%)'
        )
    return number if share == text else f"{number}%"
