"""Which devices a policy is for, and which of them are counted together.

Like sources/evaluation.py, criteria that cannot be evaluated leave a device unknown: a class that
was deleted must not remove taints.
"""

from __future__ import annotations

import msgspec

from sully.api.resource.types import DeviceTaintSelector
from sully.api.sully.types import (
    DeviceMaintenance,
    DeviceTaintPolicy,
    DeviceTaintPolicySelector,
)
from sully.domain.allocation.constraints import attribute_values
from sully.domain.devicepolicies.limits import LimitGroup
from sully.domain.devicepolicies.settings import Limit
from sully.domain.devicepolicies.sources.nodes import PolicyNode
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.rules import NO, Choice, Classes, choose
from sully.domain.devices.selectors import Content
from sully.machinery.selectors.labels import Selector, SelectorError, from_object


def names_of(selector: DeviceTaintPolicySelector) -> DeviceTaintSelector:
    """Return the criteria that a taint rule has, too."""
    return DeviceTaintSelector(
        driver=selector.driver or None,
        pool=selector.pool or None,
        device=selector.device or None,
        device_class_name=selector.device_class_name or None,
        selectors=selector.selectors,
    )


class PolicySelector:
    """The criteria of one policy or maintenance, prepared for many devices."""

    def __init__(self, policy: DeviceTaintPolicy | DeviceMaintenance) -> None:
        selector = policy.spec.selector
        self._identity = policy.spec.identity_attribute or "uuid"
        self._identities = frozenset(selector.identities)
        # Another server may have stored a selector without criteria: it selects nothing.
        self._selects = selector.match_all or _has_criteria(selector)
        self.names = names_of(selector)
        self._labels: Selector | None = None
        self._problem = ""
        if selector.node_selector is not None:
            try:
                self._labels = from_object(msgspec.to_builtins(selector.node_selector))
            except SelectorError as error:
                self._problem = f"nodeSelector: {error}"

    def choose(
        self, device: DeviceId, content: Content, node: PolicyNode | None, classes: Classes
    ) -> Choice:
        """Decide whether the policy is for a published device."""
        if self._problem:
            return Choice(selected=False, problem=self._problem)
        if not self._selects or not self._is_on_node(node):
            return NO
        if self._identities and self.identity(content) not in self._identities:
            return NO
        return choose(self.names, device, content, classes)

    def identity(self, content: Content) -> str:
        """Return what identifies the hardware; empty if it has no such attribute."""
        return _text(content, self._identity)

    def _is_on_node(self, node: PolicyNode | None) -> bool:
        if self._labels is None:
            return True
        return node is not None and self._labels.matches(node.metadata.labels)


def _has_criteria(selector: DeviceTaintPolicySelector) -> bool:
    names = selector.driver, selector.pool, selector.device, selector.device_class_name
    lists = selector.selectors, selector.identities
    return any(names) or any(lists) or selector.node_selector is not None


def groups_of(
    limits: tuple[Limit, ...],
    device: DeviceId,
    content: Content,
    node: str,
    classes: Classes,
) -> tuple[tuple[LimitGroup, ...], tuple[str, ...]]:
    """Return the devices that a device is counted with, and why limits could not be evaluated.

    There is one group for each limit on the device, and for each that may be on it.
    """
    groups: list[LimitGroup] = []
    problems: list[str] = []
    for index, limit in enumerate(limits):
        match limit.scope:
            case "Pool":
                groups.append(LimitGroup(index, str(device.pool_id)))
            case "Node":
                groups.append(LimitGroup(index, node))
            case "Attribute":
                groups.append(LimitGroup(index, _text(content, limit.name)))
            case "Class":
                selector = DeviceTaintSelector(device_class_name=limit.name)
                choice = choose(selector, device, content, classes)
                if choice.problem:
                    problems.append(f"limit of class {limit.name}: {choice.problem}")
                if choice.selected or choice.problem:
                    groups.append(LimitGroup(index, limit.name))
            case _:
                # A scope that this version does not know must not be without a limit.
                groups.append(LimitGroup(index))
    return tuple(groups), tuple(problems)


def _text(content: Content, name: str) -> str:
    full = name if "/" in name else f"{content.driver}/{name}"
    values = attribute_values(content, full) or attribute_values(content, name)
    return ",".join(sorted(str(value) for _, value in values))
