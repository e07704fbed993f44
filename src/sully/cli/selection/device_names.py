"""Which devices a name on a command line stands for: full names, globs and short forms.

A name is tried as DRIVER/POOL/DEVICE first, so that a full name is never ambiguous.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from sully.cli.command import CommandError
from sully.cli.selection.args import CLASS, DEVICE, NODE, kind_named
from sully.cli.selection.globs import ANY, is_glob
from sully.cli.selection.selectors import Pattern, parse_pattern
from sully.cli.selection.suggestions import device_not_found, suggest
from sully.domain.devices.identity import pci_addresses, uuids
from sully.domain.devices.pools import DeviceId
from sully.domain.planning.rules.selectors import RuleSelector, selectors_for
from sully.views.devices.device_views import ALL_NODES, SOME_NODES, node_of
from sully.views.devices.name_index import Names
from sully.views.devices.usage import allocated_devices
from sully.views.kinds import CLAIMS

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceAttribute
    from sully.views.snapshot.snapshot import Snapshot

_MIN_PREFIX = 4
"""The shortest prefix of a UUID or name that is accepted."""
_MOST = 5
"""How many devices an error lists."""
_SLICES = ("resourceslice", "resourceslices")


class MissingNameError(LookupError):
    """A name that stands for no device; the text has the reason and suggests another."""


class NamedDevices(msgspec.Struct, frozen=True):
    """The devices that a name stands for."""

    devices: tuple[DeviceId, ...]
    selectors: tuple[RuleSelector, ...]
    """The selectors of rules for them."""
    globbed: bool = False
    """The name is a glob: devices that appear later may match it, but not the selectors."""


@dataclass(slots=True)
class DeviceNames:
    """All devices of a snapshot, by every name they have."""

    snapshot: "Snapshot"
    nodes: dict[DeviceId, str] = field(init=False)
    """The node of each device; empty if it has none of its own. Those that are allocated, but no
    longer published, are included: rules select them, too."""

    def __post_init__(self) -> None:
        inventory, claims = self.snapshot.inventory, self.snapshot.of(CLAIMS).values()
        self.nodes = dict.fromkeys(sorted(allocated_devices(claims)), "")
        for pool in inventory.pools():
            for name, device in inventory.devices(pool).items():
                node = node_of(device.published)
                self.nodes[DeviceId(*pool, name)] = "" if node in (ALL_NODES, SOME_NODES) else node

    def find(self, text: str, kind: str = DEVICE) -> NamedDevices:
        """Return the devices of a name; raise `MissingNameError` if there are none."""
        if kind == NODE:
            return self._on_node(_without_kind(text, NODE))
        pattern = parse_pattern(text)
        if devices := self.matching(pattern):
            return NamedDevices(*self._by_pattern(pattern, devices))
        if is_glob(text):
            raise MissingNameError(device_not_found(self.snapshot, pattern))
        return self._short(text) or self._printed_by_kubectl(text)

    def matching(self, pattern: Pattern) -> tuple[DeviceId, ...]:
        """Return the devices that a pattern matches, in order."""
        return tuple(sorted(device for device in self.nodes if pattern.matches(*device)))

    def selectors(
        self, devices: Iterable[DeviceId], *, whole_pools: bool = True
    ) -> tuple[RuleSelector, ...]:
        """Return the selectors of rules for these devices: by pool where all are selected."""
        inventory = self.snapshot.inventory
        known = inventory.devices
        return tuple(
            selectors_for(devices, known, lambda x: self.nodes.get(x, ""), whole_pools=whole_pools)
        )

    def _by_pattern(
        self, pattern: Pattern, devices: tuple[DeviceId, ...]
    ) -> tuple[tuple[DeviceId, ...], tuple[RuleSelector, ...], bool]:
        if is_plain(pattern):
            return devices, (plain_selector(pattern, self._node(devices)),), False
        # A part that is * is left out; a glob becomes the names that exist now.
        parts = [name for name in Names._fields if getattr(pattern, name) != ANY]
        selectors = dict.fromkeys(
            RuleSelector(
                **{name: getattr(device, name) for name in parts},
                node=self.nodes[device] if "pool" in parts else "",
            )
            for device in devices
        )
        return devices, tuple(selectors), True

    def _node(self, devices: Collection[DeviceId]) -> str:
        nodes = {self.nodes[device] for device in devices}
        return nodes.pop() if len(nodes) == 1 else ""

    # -- short forms ------------------------------------------------------------------------------

    def _short(self, text: str) -> NamedDevices | None:
        for matches in (self._ends_with, self._has_uuid, self._starts_with):
            devices = [device for device in sorted(self.nodes) if matches(device, text)]
            if len(devices) > 1 and matches != self._has_uuid:
                raise _ambiguous(text, devices)
            if devices:
                return NamedDevices(tuple(devices), self.selectors(devices, whole_pools=False))
            if matches == self._ends_with and text in self.nodes.values():
                return self._on_node(text)
        return None

    def _ends_with(self, device: DeviceId, text: str) -> bool:
        on_node = bool(self.nodes[device]) and text == f"{self.nodes[device]}/{device.device}"
        return on_node or f"/{device}".endswith(f"/{text}")

    def _has_uuid(self, device: DeviceId, text: str) -> bool:
        return text.lower() in self.uuids(device)

    def _starts_with(self, device: DeviceId, text: str) -> bool:
        if len(text) < _MIN_PREFIX:
            return False
        names = [str(device), f"{device.pool}/{device.device}", device.device]
        if self.nodes[device]:
            names.append(f"{self.nodes[device]}/{device.device}")
        # gpu-1 is not a prefix of gpu-10: it is the name of another device.
        whole = not text[-1].isdigit()
        return any(
            name.startswith(text) and (whole or not name[len(text) : len(text) + 1].isdigit())
            for name in names
        ) or any(uuid.startswith(text.lower()) for uuid in self.uuids(device))

    def _on_node(self, name: str) -> NamedDevices:
        devices = tuple(sorted(device for device, node in self.nodes.items() if node == name))
        if not devices:
            text = f'no devices found on node "{name}"'
            if is_glob(name):
                raise MissingNameError(f"{text}: names of nodes are not patterns")
            raise MissingNameError(f"{text}{suggest(name, set(self.nodes.values()))}")
        return NamedDevices(devices, self.selectors(devices))

    def _printed_by_kubectl(self, text: str) -> NamedDevices:
        """Return the devices of an object as `kubectl get -o name` prints it."""
        kind, slash, name = text.partition("/")
        if slash and kind_named(kind) == NODE:
            return self._on_node(name)
        if slash and kind_named(kind) == DEVICE:
            return self.find(name)
        if slash and kind.partition(".")[0].lower() in _SLICES:
            return self._in_slice(name)
        if slash and kind_named(kind) == CLASS:
            raise MissingNameError(f'"{text}" is a class, not a device; use --class {name}')
        raise MissingNameError(self._not_found(text))

    def _in_slice(self, name: str) -> NamedDevices:
        devices = tuple(
            device.id
            for device in self.snapshot.devices()
            if device.published.slice.metadata.name == name
        )
        if not devices:
            raise MissingNameError(f'no devices found in resourceslice "{name}"')
        return NamedDevices(devices, self.selectors(devices))

    # -- what is not found ------------------------------------------------------------------------

    def _not_found(self, text: str) -> str:
        first, slash, rest = text.partition("/")
        if slash and any(device.driver == first for device in self.nodes):
            return device_not_found(self.snapshot, parse_pattern(text))
        on_node = {device.device for device, node in self.nodes.items() if node == first}
        if slash and on_node:
            return f'device "{rest}" not found on node "{first}"{suggest(rest, on_node)}'
        if text.count("/") > 1:
            return device_not_found(self.snapshot, parse_pattern(text))
        names = {f"{node}/{device.device}" for device, node in self.nodes.items() if node}
        if not slash:
            names = {*self.nodes.values(), *(part for device in self.nodes for part in device)}
        return f'device "{text}" not found{suggest(text, names - {""})}'

    # -- attributes -------------------------------------------------------------------------------

    def uuids(self, device: DeviceId) -> frozenset[str]:
        """Return the UUIDs of a device and of what it is a partition of, in lower case."""
        return uuids(self._attributes(device))

    def pci_addresses(self, device: DeviceId) -> frozenset[str]:
        """Return the PCI address of a device and its PCIe root, in lower case."""
        return pci_addresses(self._attributes(device))

    def _attributes(self, device: DeviceId) -> "Mapping[str, DeviceAttribute]":
        effective = self.snapshot.inventory.device(device)
        return effective.attributes if effective is not None else {}


def is_plain(pattern: Pattern) -> bool:
    """Report whether one rule can express a pattern: each part is a name or `*`."""
    parts = (pattern.driver, pattern.pool, pattern.device)
    return all(part == ANY or not is_glob(part) for part in parts)


def plain_selector(pattern: Pattern, node: str = "") -> RuleSelector:
    """Return the selector of a plain pattern; it also selects devices that appear later."""
    names = (pattern.driver, pattern.pool, pattern.device)
    driver, pool, device = ("" if name == ANY else name for name in names)
    return RuleSelector(driver=driver, pool=pool, device=device, node=node if pool else "")


def _without_kind(text: str, kind: str) -> str:
    word, slash, name = text.partition("/")
    return name if slash and kind_named(word) == kind else text


def _ambiguous(text: str, devices: list[DeviceId]) -> CommandError:
    more = f" and {len(devices) - _MOST} more" if len(devices) > _MOST else ""
    return CommandError(
        f'"{text}" matches {len(devices)} devices: {", ".join(map(str, devices[:_MOST]))}{more}\n'
        "  use NODE/DEVICE or DRIVER/POOL/DEVICE, or a glob in quotes for several",
        code=2,
    )
