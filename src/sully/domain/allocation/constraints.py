"""What devices of a claim must have in common, or must not.

Both constraints are monotonic: once they reject a device, more devices do not help. An attribute
counts with its type; a list counts as the set of its values, of which one must be shared by all
(match) or none by any two (distinct), which for single values is equality.
"""

from __future__ import annotations

from sully.api.resource.types import DeviceAttribute, DeviceConstraint
from sully.domain.allocation.requests import Alternative
from sully.domain.devices.selectors import Content

Values = frozenset[tuple[str, object]]


def attribute_values(content: Content, name: str) -> Values:
    """Return the values of an attribute with their types; nothing if the device lacks it.

    The full name is looked up first, then the short form if the domain is the driver's.
    """
    attribute = content.attributes.get(name)
    if attribute is None:
        domain, _, identifier = name.rpartition("/")
        attribute = content.attributes.get(identifier) if domain == content.driver else None
    return _values(attribute) if attribute is not None else frozenset()


def _values(attribute: DeviceAttribute) -> Values:
    single = {
        "int": attribute.int_value,
        "bool": attribute.bool_value,
        "string": attribute.string_value,
        "version": attribute.version_value,
    }
    several = {
        "int": attribute.ints,
        "bool": attribute.bools,
        "string": attribute.strings,
        "version": attribute.versions,
    }
    return frozenset(
        [(kind, value) for kind, value in single.items() if value is not None]
        + [(kind, value) for kind, values in several.items() for value in values or ()]
    )


class Constraint:
    """The state of one constraint during one attempt."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        self.attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        self._requests = frozenset(constraint.requests)
        # With both set the first wins, as in Kubernetes.
        self._distinct = constraint.match_attribute is None
        self._shared: list[Values] = []
        self._seen: set[tuple[str, object]] = set()

    def covers(self, alternative: Alternative) -> bool:
        """Report whether devices of an alternative are bound by this."""
        return (
            not self._requests
            or alternative.request in self._requests
            or alternative.full_name in self._requests
        )

    def add(self, content: Content) -> bool:
        """Add a device, unless it violates the constraint; report whether it was added."""
        values = attribute_values(content, self.attribute)
        if self._distinct:
            return self._add_distinct(values)
        common = values & self._shared[-1] if self._shared else values
        if not common:
            return False
        self._shared.append(common)
        return True

    def _add_distinct(self, values: Values) -> bool:
        if not values or not self._seen.isdisjoint(values):
            return False
        self._seen |= values
        return True

    def remove(self, content: Content) -> None:
        """Remove the device that was added last."""
        if self._distinct:
            self._seen -= attribute_values(content, self.attribute)
        else:
            self._shared.pop()
