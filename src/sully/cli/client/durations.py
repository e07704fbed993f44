"""Times in flags: 15s, 500ms, 1m30s, 2h, 30d."""

import argparse
import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")


def seconds(text: str) -> float:
    """Read a time; for `type=` of a flag."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; say for example 15s or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
