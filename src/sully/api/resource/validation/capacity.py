"""Capacities and the policies by which shares of them are requested."""

from sully.api.resource.checks import Errors, Options, unique_keys, validate_items
from sully.api.resource.types import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)
from sully.machinery.fields import Path
from sully.machinery.formats.quantity import MAX_INT64, NANO, Quantity, parse_quantity

VALID_VALUES_MAX = 10
_MILLI = NANO // 1000


def validate_capacity(
    capacity: DeviceCapacity, at: Path, rules: Options, *, shareable: bool
) -> Errors:
    """Check the policy of a capacity; any amount is fine."""
    policy = capacity.request_policy
    if policy is None:
        return
    at = at.child("requestPolicy")
    if not shareable:
        yield at.forbidden("allowMultipleAllocations must be true")
    elif policy.valid_values and policy.valid_range is not None:
        yield at.forbidden(
            'exactly one policy can be specified, cannot specify "validValues" and "validRange"'
            " at the same time"
        )
    else:
        yield from _choices(parse_quantity(capacity.value), policy, at, rules)


def _choices(total: Quantity, policy: CapacityRequestPolicy, at: Path, rules: Options) -> Errors:
    kind = "validValues" if policy.valid_values else "validRange" if policy.valid_range else ""
    if not kind:
        return
    if policy.default is None:
        yield at.child("default").required(f"required when {kind} is defined")
        return
    default = parse_quantity(policy.default)
    if policy.valid_range is not None:
        yield from _range(default, total, policy.valid_range, at.child("validRange"), rules)
    else:
        yield from _values(default, total, policy.valid_values, at.child("validValues"), rules)


def _values(
    default: Quantity, total: Quantity, texts: tuple[str, ...], at: Path, rules: Options
) -> Errors:
    values = [parse_quantity(text) for text in texts]
    for position in range(1, len(values)):
        if values[position - 1] > values[position]:
            yield at.index(position).invalid(
                str(values[position]), "values must be sorted in ascending order"
            )
    has_default = False

    def check(value: Quantity, at: Path) -> Errors:
        nonlocal has_default
        if value > total:
            yield at.invalid(str(value), f"option is larger than capacity value: {total}")
        has_default = has_default or value == default

    yield from validate_items(values, VALID_VALUES_MAX, check, at)
    if len(values) <= VALID_VALUES_MAX:
        exact = rules.gates["DRAFractionalCapacityRange"]
        yield from unique_keys(values, _decimal if exact else _whole, at)
    # Of too many values none is validated.
    if not has_default or len(values) > VALID_VALUES_MAX:
        yield at.invalid(str(default), "default value is not valid according to the requestPolicy")


def _whole(value: Quantity) -> str:
    return str(value.ceil())


def _decimal(value: Quantity) -> str:
    """Write an amount as a plain decimal number."""
    whole, rest = divmod(abs(value.nanos), NANO)
    text = f"{whole}.{rest:09d}".rstrip("0").rstrip(".")
    return f"-{text}" if value.nanos < 0 else text


def _range(
    default: Quantity,
    total: Quantity,
    valid: CapacityRequestPolicyRange,
    at: Path,
    rules: Options,
) -> Errors:
    if valid.minimum is None:
        yield at.child("min").required("required when validRange is defined")
        return
    least = parse_quantity(valid.minimum)
    most = parse_quantity(valid.maximum) if valid.maximum is not None else None
    step = parse_quantity(valid.step) if valid.step is not None else None
    yield from _bounds(default, total, least, most, at)
    named = [("default", default), ("min", least), ("max", most), ("step", step)]
    present = [(name, value) for name, value in named if value is not None]
    fractional = rules.gates["DRAFractionalCapacityRange"] and any(
        value.nanos % NANO for _, value in present
    )
    if fractional:
        unsafe = list(_not_milli(present, at))
        yield from unsafe
        if unsafe:
            return
    if step is None:
        return
    if step.sign() <= 0:
        yield at.child("step").invalid(str(step), "must be greater than zero")
        return
    if least + step > total:
        yield at.child("step").invalid(
            str(step), f"one step {least + step} is larger than capacity value: {total}"
        )
    unsafe = [] if fractional else list(_not_int64(present, at))
    yield from unsafe
    if not unsafe:
        unit = _MILLI if fractional else NANO
        ends = (default,) if most is None else (default, most)
        yield from _steps(ends, least, step, at.child("step"), unit)


def _bounds(
    default: Quantity, total: Quantity, least: Quantity, most: Quantity | None, at: Path
) -> Errors:
    if least > total:
        yield at.child("min").invalid(str(least), f"min is larger than capacity value: {total}")
    if default < least:
        yield at.child("default").invalid(str(default), f"default is less than min: {least}")
    if most is None:
        return
    if least > most:
        yield at.child("max").invalid(str(least), f"min is larger than max: {most}")
    if most > total:
        yield at.child("max").invalid(str(most), f"max is larger than capacity value: {total}")
    if default > most:
        yield at.child("default").invalid(str(default), f"default is more than max: {most}")


def _not_milli(values: list[tuple[str, Quantity]], at: Path) -> Errors:
    for name, value in values:
        if value.nanos % _MILLI or abs(value.nanos // _MILLI) > MAX_INT64:
            text = "value cannot be represented as a milli value"
            yield at.child(name).invalid(str(value), text)


def _not_int64(values: list[tuple[str, Quantity]], at: Path) -> Errors:
    for name, value in values:
        if value.sign() < 0:
            yield at.child(name).invalid(str(value), "must be greater than or equal to 0")
        elif value.ceil() > MAX_INT64:
            yield at.child(name).invalid(str(value), f"must not be larger than {MAX_INT64}")


def _steps(
    ends: tuple[Quantity, ...], least: Quantity, step: Quantity, at: Path, unit: int
) -> Errors:
    def units(value: Quantity) -> int:
        return -(-value.nanos // unit)

    for end in ends:
        if (units(end) - units(least)) % units(step):
            yield at.invalid(
                str(end), f"value is not a multiple of a given step ({step}) from ({least})"
            )
