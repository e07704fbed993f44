"""How people choose by labels: `-l region=eu`, as kubectl takes it."""

from typing import TYPE_CHECKING

from sully.cli.client.calling import CommandError

if TYPE_CHECKING:
    from sully.machinery.labels import Selector


def read_selector(text: str) -> "Selector":
    """Read the value of `-l`; an empty one selects everything."""
    from sully.machinery.labels import SelectorError, parse

    try:
        return parse(text)
    except SelectorError as error:
        raise CommandError(f"-l {text}: {error}", code=2) from error
