"""How Go prints any value: merge errors put whole maps and lists into their texts.

The neighbour machinery/serialization/gotext.py has the quoting that field errors use.
"""

import math
from decimal import Decimal
from typing import Any

from sully.machinery.serialization.gotext import quote

_LEAST_POWER = -4
_LARGE_POWER = 6


def plain(value: Any) -> str:
    """Print a value as %v does: `map[a:1 b:[x y]]`."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{plain(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(plain, value)) + "]"
    return "<nil>" if value is None else _scalar(value)


def syntax(value: Any) -> str:
    """Print a value as %#v does: in the syntax of a Go program."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        inner = ", ".join(f"{quote(name)}:{syntax(value[name])}" for name in sorted(value))
        return "map[string]interface {}{" + inner + "}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(syntax, value)) + "}"
    return "interface {}(nil)" if value is None else _scalar(value)


def type_name(value: Any) -> str:
    """Name the Go type that holds a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if _is_large(value):
        return "float64"
    names = {str: "string", int: "int64", float: "float64", list: "[]interface {}"}
    return names.get(type(value), "<nil>" if value is None else "map[string]interface {}")


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) or _is_large(value):
        return _float(float(value))
    return str(value)


def _is_large(value: Any) -> bool:
    """Report whether an integer does not fit into 64 bits: Go reads it as a float."""
    return isinstance(value, int) and not -(2**63) <= value < 2**63


def _float(value: float) -> str:
    """Print a float as %v does: shortest digits, an exponent from 1e+06 on."""
    if not math.isfinite(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    power = len(digits) - 1 + int(exponent)
    if value and (power < _LEAST_POWER or power >= _LARGE_POWER):
        first, *rest = map(str, digits)
        mantissa = f"{first}.{''.join(rest)}" if rest else first
        return f"{'-' if value < 0 else ''}{mantissa}e{power:+03d}"
    return f"{int(value)}" if value == int(value) else repr(value)
