"""How a claim selects exactly one device.

Claims cannot name a device: they have expressions over attributes. So the device needs an attribute
that identifies it, such as a UUID, and no other device of its driver may have the same value.
"""

from __future__ import annotations

from collections.abc import Iterable

from sully.domain.allocation.constraints import attribute_values
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.selectors import Content
from sully.machinery.serialization.gotext import quote


class NotSelectableError(ValueError):
    """No claim can select exactly this device; the text has the reason."""


def exact_expression(content: Content, attribute: str) -> str:
    """Return the expression that is true for devices with the same value of an attribute."""
    domain, _, name = attribute.rpartition("/")
    domain = domain or content.driver
    value = _string(content, f"{domain}/{name}", attribute)
    values = f"device.attributes[{quote(domain)}]"
    return (
        f"device.driver == {quote(content.driver)} && {quote(name)} in {values}"
        f" && {values}.{name} == {quote(value)}"
    )


def check_unique(
    device: DeviceId, content: Content, attribute: str, others: Iterable[tuple[DeviceId, Content]]
) -> None:
    """Raise NotSelectableError if another device of the driver has the same value."""
    domain, _, name = attribute.rpartition("/")
    full = f"{domain or content.driver}/{name}"
    value = _string(content, full, attribute)
    for other, its in others:
        if other == device or its.driver != content.driver:
            continue
        if ("string", value) in attribute_values(its, full):
            raise NotSelectableError(
                f"device {other} has the same value of the attribute {attribute}"
            )


def _string(content: Content, full: str, attribute: str) -> str:
    values = attribute_values(content, full)
    if not values:
        raise NotSelectableError(f"the device has no attribute {attribute} that identifies it")
    texts = [str(value) for kind, value in values if kind == "string"]
    if len(values) != 1 or not texts:
        raise NotSelectableError(f"the attribute {attribute} is not one string")
    return texts[0]
