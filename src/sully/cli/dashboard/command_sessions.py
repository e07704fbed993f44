"""Runs commands for a viewer: a command line that is parsed, with the viewer's client.

Values of the page are passed as `--flag=value` and behind `--`, so that none of them is read as a
flag: flags such as --kubeconfig and --snapshot name files of this machine.
"""

from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from shlex import join
from typing import Any

import click

from sully.cli.client.session import Session
from sully.cli.command import Options, usage_error
from sully.cli.main import load
from sully.dashboard.app import RouteError
from sully.dashboard.viewers import Viewer


def parsed(command: str, flags: Mapping[str, Any], arguments: Iterable[str]) -> Options:
    """Return the options of a command line; raise `RouteError` if it is wrong."""
    loaded = load(command)
    for name in (name for name, value in flags.items() if value is True):
        if not _is_switch(loaded, name):
            # The next argument would be taken as its value, even `--`.
            raise RouteError(f"--{name} needs a value")
    try:
        context = loaded.make_context(command, [*_flags(flags), "--", *arguments])
    except click.UsageError as error:
        raise RouteError(usage_error(error)[0]) from error
    return Options(**context.params)


def _is_switch(command: click.Command, name: str) -> bool:
    """Report whether a flag of a command has no value."""
    return any(
        isinstance(param, click.Option) and param.is_flag
        for param in command.params
        if f"--{name}" in param.opts
    )


def _flags(flags: Mapping[str, Any]) -> Iterable[str]:
    for name, value in flags.items():
        if value is True:
            yield f"--{name}"
        elif value not in (None, False, ""):
            yield f"--{name}={value}"


def command_line(command: str, flags: Mapping[str, Any], arguments: Iterable[str]) -> str:
    """Return the command that does the same, to copy."""
    return join(["sully", command, *arguments, *_flags(flags)])


def session_of(
    viewer: Viewer, command: str, flags: Mapping[str, Any], arguments: Sequence[str]
) -> Session:
    """Return the session of a command; what it prints is collected in `stream`."""
    return Session(
        parsed(command, flags, arguments),
        command,
        viewer.clock,
        viewer.transport,
        viewer.access.server,
        viewer.access.namespace or "default",
        stream=StringIO(),
        command_line=command_line(command, flags, arguments),
    )


def printed(session: Session) -> list[str]:
    """Return the lines that a command has printed."""
    return session.stream.getvalue().splitlines() if isinstance(session.stream, StringIO) else []
