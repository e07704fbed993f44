"""Output for programs: JSON, YAML and parts of them on standard output."""

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sully.cli.command import TEMPLATES
from sully.machinery.formats.timestamps import format_time
from sully.machinery.serialization.codec import to_json, to_pretty_json, to_yaml


def print_document(
    value: Any, output: str, rows: Sequence[str] = (), *, titled: bool = True
) -> None:
    """Print a document; `rows` are the lists in it that custom columns have a row for."""
    if output.startswith(TEMPLATES):
        from sully.cli.output.templates import print_template

        print_template(value, output, rows, titled=titled)
        return
    text = to_yaml(value) if output == "yaml" else to_pretty_json(value)
    sys.stdout.write(text.decode())
    sys.stdout.flush()


def print_event(value: Any, output: str) -> None:
    """Print one of a stream of values: a line of JSON or of a template, or a YAML document."""
    if output.startswith(TEMPLATES):
        from sully.cli.output.templates import print_template_line

        print_template_line(value, output)
        return
    text = b"---\n" + to_yaml(value) if output == "yaml" else to_json(value) + b"\n"
    sys.stdout.write(text.decode())
    sys.stdout.flush()


def without_empty(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not empty, in the order given; False and 0 are kept."""
    # False equals 0.
    return {name: value for name, value in fields.items() if value or value == 0}


def time_text(time: datetime | None) -> str | None:
    """Write a time as the API does."""

    return format_time(time) if time is not None else None
