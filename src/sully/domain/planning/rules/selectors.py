"""What each of several DeviceTaintRules selects, and how it is called beside the others.

Kubernetes selects devices by driver, pool and name only. A selection by anything else is written as
rules for what it selects now: one for a pool all of whose devices are selected, one for each other
device.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

import msgspec

from sully.domain.devices.pools import DeviceId, PoolId

Obj = dict[str, Any]
_MAX_SUFFIX: Final = 120


class RuleSelector(msgspec.Struct, frozen=True, kw_only=True):
    """The device selector of a rule; an empty field matches any."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    device_class: str = ""
    expressions: tuple[str, ...] = ()
    node: str = ""
    """The node of the pool; only for the name of the rule."""

    def fields(self) -> Obj:
        """Return it as `spec.deviceSelector`."""
        fields: Obj = {"driver": self.driver, "pool": self.pool, "device": self.device}
        fields["deviceClassName"] = self.device_class
        fields["selectors"] = [{"cel": {"expression": text}} for text in self.expressions]
        return {name: value for name, value in fields.items() if value}

    @property
    def names(self) -> tuple[str, str, str]:
        """Return driver, pool and device."""
        return self.driver, self.pool, self.device

    @property
    def label(self) -> str:
        """Return node and device, or whatever else it selects by."""
        names = (self.device_class, self.node or self.pool, self.device)
        return "-".join(filter(None, names)) or self.driver or "all"


def selectors_for(
    devices: Iterable[DeviceId],
    known: Callable[[PoolId], Collection[str]],
    node_of: Callable[[DeviceId], str],
    *,
    whole_pools: bool = True,
) -> list[RuleSelector]:
    """Return the selectors that select these devices, and no others that exist now."""
    by_pool: dict[PoolId, list[DeviceId]] = {}
    for device in sorted(set(devices)):
        by_pool.setdefault(device.pool_id, []).append(device)
    selectors = []
    for pool, members in by_pool.items():
        nodes = {node_of(device) for device in members}
        node = nodes.pop() if len(nodes) == 1 else ""
        if whole_pools and {device.device for device in members} >= set(known(pool)):
            selectors.append(RuleSelector(driver=pool.driver, pool=pool.pool, node=node))
            continue
        selectors += [RuleSelector(**device._asdict(), node=node_of(device)) for device in members]
    return selectors


def name_suffixes(selectors: Sequence[RuleSelector]) -> list[str]:
    """Return what distinguishes rules that are created together: valid in names, each once."""
    slugs = [_slug(selector.label) for selector in selectors]
    counts = Counter(slugs)
    return [
        slug if counts[slug] == 1 and slug == selector.label else f"{slug}-{digest(selector)}"
        for slug, selector in zip(slugs, selectors, strict=True)
    ]


def _slug(text: str) -> str:
    slug = re.sub(r"[^a-z0-9.-]+", "-", text.lower())
    # Each part between dots begins and ends with a letter or digit.
    parts = (part.strip("-") for part in slug[:_MAX_SUFFIX].split("."))
    return ".".join(filter(None, parts)) or "devices"


def digest(value: Any) -> str:
    """Return a short hash, the same for the same arguments."""
    content = value.fields() if isinstance(value, RuleSelector) else value
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
