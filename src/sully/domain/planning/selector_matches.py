"""Requests whose selectors matched devices before a change, and match none after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from sully.api.resource.types import (
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from sully.domain.devices.selectors import Content, DeviceSelectorError, matches
from sully.machinery.cel import CostBudget, CostBudgetExceededError

Alternative = ExactDeviceRequest | DeviceSubRequest


class PublishedDevices(msgspec.Struct, frozen=True):
    """What selectors see at one time: classes, and the devices, equal ones once."""

    classes: Mapping[str, DeviceClass]
    contents: tuple[Content, ...]
    _budget: CostBudget = msgspec.field(default_factory=CostBudget)

    def match(self, request: DeviceRequest) -> bool:
        """Report whether any device matches a request, or one of its alternatives."""
        return any(map(self._any_matches, alternatives(request)))

    def _any_matches(self, alternative: Alternative) -> bool:
        device_class = self.classes.get(alternative.device_class_name)
        if device_class is None:
            return False
        selectors = (*device_class.spec.selectors, *alternative.selectors)
        try:
            return any(self._matches(selectors, content) for content in self.contents)
        except CostBudgetExceededError:
            # It is unknown, so nothing is reported.
            return True

    def _matches(self, selectors: tuple[DeviceSelector, ...], content: Content) -> bool:
        try:
            return matches(selectors, content, self._budget)
        except DeviceSelectorError:
            return False


def alternatives(request: DeviceRequest) -> Iterator[Alternative]:
    """Yield what can satisfy a request."""
    if request.exactly is not None:
        yield request.exactly
    yield from request.first_available


def requested_classes(spec: ResourceClaimSpec) -> set[str]:
    """Return the device classes of all requests, alternatives included."""
    return {
        alternative.device_class_name
        for request in spec.devices.requests or ()
        for alternative in alternatives(request)
    }


def unmatched_requests(
    spec: ResourceClaimSpec, before: PublishedDevices, after: PublishedDevices
) -> Iterator[DeviceRequest]:
    """Yield the requests that a change leaves without any device that matches."""
    for request in spec.devices.requests or ():
        if not after.match(request) and before.match(request):
            yield request


def distinct_contents(contents: Iterable[Content]) -> tuple[Content, ...]:
    """Return contents, equal ones once: most devices of a fleet share theirs."""
    return tuple(dict.fromkeys(contents))
