"""Answers for programs: JSON and YAML on the standard output."""

import sys
from datetime import datetime
from typing import Any


def show_document(value: Any, output: str) -> None:
    """Print a plain value as JSON or YAML."""
    from sully.machinery.codec import to_pretty_json, to_yaml

    text = to_yaml(value) if output == "yaml" else to_pretty_json(value)
    sys.stdout.write(text.decode())
    sys.stdout.flush()


def show_line(value: Any, output: str) -> None:
    """Print one of a stream of values: JSON on a line of its own, or a document of YAML."""
    from sully.machinery.codec import to_json, to_yaml

    text = b"---\n" + to_yaml(value) if output == "yaml" else to_json(value) + b"\n"
    sys.stdout.write(text.decode())
    sys.stdout.flush()


def filled(**fields: Any) -> dict[str, Any]:
    """Return the fields that say something, in the order given; False and 0 do."""
    return {name: value for name, value in fields.items() if value not in (None, "", (), [], {})}


def moment(time: datetime | None) -> str | None:
    """Write a time as objects have it."""
    from sully.machinery.timestamps import format_time

    return format_time(time) if time is not None else None
