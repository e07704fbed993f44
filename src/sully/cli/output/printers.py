"""Output for programs: JSON and YAML on standard output."""

import sys
from datetime import datetime
from typing import Any

from sully.machinery.formats.timestamps import format_time
from sully.machinery.serialization.codec import to_json, to_pretty_json, to_yaml


def print_document(value: Any, output: str) -> None:

    text = to_yaml(value) if output == "yaml" else to_pretty_json(value)
    sys.stdout.write(text.decode())
    sys.stdout.flush()


def print_event(value: Any, output: str) -> None:
    """Print one of a stream of values: a line of JSON, or a YAML document."""

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
