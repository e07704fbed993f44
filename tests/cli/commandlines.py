"""Command lines as the program parses them."""

from __future__ import annotations

from collections.abc import Sequence

import click

from sully.cli.command import Options
from sully.cli.main import root


def parsed(*arguments: str) -> Options:
    """Return the options of a command line; raise `click.UsageError` if it is wrong."""
    program = root()
    with program.make_context("sully", list(arguments)) as ctx:
        name, command, rest = program.resolve_command(ctx, [*ctx._protected_args, *ctx.args])
        assert command is not None
        with command.make_context(name, rest, parent=ctx) as own:
            return Options(**own.params)


def refusal(arguments: Sequence[str]) -> str:
    """Return what is wrong with a command line; empty if nothing is."""
    try:
        parsed(*arguments)
    except click.UsageError as error:
        return error.message
    return ""
