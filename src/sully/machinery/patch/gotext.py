"""How Go prints any value: merge errors put whole maps and lists into their texts.

The neighbour machinery/serialization/gotext.py has the quoting that field errors use.
"""

import math
from typing import Any

from sully.machinery.serialization.gotext import quote


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
    names = {str: "string", int: "int64", float: "float64", list: "[]interface {}"}
    return names.get(type(value), "<nil>" if value is None else "map[string]interface {}")


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    return str(value)


def _float(value: float) -> str:
    """Print a float as %v does: shortest digits, an exponent from 1e+21 on."""
    if not math.isfinite(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    size = abs(value)
    if size and (size < 1e-4 or size >= 1e21):
        mantissa, _, exponent = repr(value).partition("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent):+03d}"
    return f"{int(value)}" if value == int(value) else repr(value)
