"""EndpointSlices: a part of the addresses of a Service."""

import ipaddress
from collections.abc import Iterator
from typing import Any, ClassVar

from sully.api.core import generations
from sully.api.core.checks import (
    IMMUTABLE,
    Errors,
    dns_label,
    dns_subdomain,
    formatted,
    label_key,
    labels,
    one_of,
    same,
)
from sully.api.core.columns import AGE, NAME, UNSET, plain
from sully.api.core.services.endpoints import PROTOCOLS, endpoint_address, ip_address, with_more
from sully.machinery.declared import declared
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import dns_subdomain_problems, label_value_problems
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

DISCOVERY = "io.k8s.api.discovery.v1"
_TYPES = ("IPv4", "IPv6", "FQDN")
_CONTENT = ("addressType", "endpoints", "ports")
_MOST_ENDPOINTS = 1000
_MOST_ADDRESSES = 100
_MOST_PORTS = 20_000
_MOST_LABELS = 16
_MOST_HINTS = 8


class EndpointSliceStrategy(Strategy, frozen=True):
    """Writes to slices."""

    declared: ClassVar[tuple[str, ...]] = ("addressType",)

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in name and protocol of ports."""
        for port in obj.get("ports") or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Set the first generation, and drop the topology of older versions."""
        generations.start(obj)
        for endpoint in obj.get("endpoints") or ():
            endpoint.pop("deprecatedTopology", None)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Count a change of content or labels."""
        changed = not all(same(obj.get(name), old.get(name)) for name in _CONTENT)
        noted = (obj["metadata"].get("labels"), old["metadata"].get("labels"))
        generations.follow(obj, old, bump=changed or not same(*noted))

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check type, ports and endpoints."""
        yield from self._head(obj)
        yield from _endpoints(obj)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state; endpoints only if they change."""
        yield from self._head(obj)
        if not same(obj.get("endpoints"), old.get("endpoints")):
            yield from _endpoints(obj)
        if obj["addressType"] != old["addressType"]:
            yield Path("addressType").invalid(None, IMMUTABLE)

    def _head(self, obj: Obj) -> Errors:
        yield from one_of(obj["addressType"], _TYPES, Path("addressType"), required=True)
        yield from _ports(obj.get("ports") or [], Path("ports"))

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterator[str]:
        """Warn about a deprecated type."""
        if old is None and obj["addressType"] == "FQDN":
            yield "spec.addressType: FQDN endpoints are deprecated"


def _ports(ports: list[Obj], at: Path) -> Errors:
    if len(ports) > _MOST_PORTS:
        yield at.too_many(len(ports), _MOST_PORTS)
        return
    seen: set[str] = set()
    for position, port in enumerate(ports):
        here, name = at.index(position), port["name"]
        if name:
            yield from dns_label(name, here.child("name"))
        if name in seen:
            yield here.child("name").duplicate(name)
        seen.add(name)
        yield from one_of(port["protocol"], PROTOCOLS, here.child("protocol"))
        if "appProtocol" in port:
            yield from label_key(port["appProtocol"], here.child("appProtocol"))


def _endpoints(obj: Obj) -> Errors:
    endpoints, at = obj.get("endpoints") or [], Path("endpoints")
    if len(endpoints) > _MOST_ENDPOINTS:
        yield at.too_many(len(endpoints), _MOST_ENDPOINTS)
        return
    for position, endpoint in enumerate(endpoints):
        yield from _endpoint(endpoint, obj["addressType"], at.index(position))


def _endpoint(endpoint: Obj, type_: str, at: Path) -> Errors:
    addresses, here = endpoint["addresses"] or [], at.child("addresses")
    if not addresses:
        yield from declared([here.required()])
    elif len(addresses) > _MOST_ADDRESSES:
        yield from declared([here.too_many(len(addresses), _MOST_ADDRESSES)])
    for position, address in enumerate(addresses):
        if type_ in _TYPES:
            yield from _address(address, type_, here, position)
    if "nodeName" in endpoint:
        yield from dns_subdomain(endpoint["nodeName"], at.child("nodeName"))
    topology = endpoint.get("deprecatedTopology") or {}
    if len(topology) > _MOST_LABELS:
        yield at.child("deprecatedTopology").too_many(len(topology), _MOST_LABELS)
    yield from labels(topology, at.child("deprecatedTopology"))
    if "hostname" in endpoint:
        yield from dns_label(endpoint["hostname"], at.child("hostname"))
    yield from _hints(endpoint.get("hints") or {}, at.child("hints"))


def _address(address: str, type_: str, at: Path, position: int) -> Errors:
    here = at.index(position)
    if type_ == "FQDN":
        yield from _domain_name(address, here)
        return
    problems = [*ip_address(address, here)]
    if problems:
        yield from problems
        return
    if f"IPv{ipaddress.ip_address(address).version}" != type_:
        yield at.invalid(address, f"must be an {type_} address")
    yield from endpoint_address(address, here)


def _domain_name(name: str, at: Path) -> Errors:
    if not name:
        yield at.required()
        return
    trimmed = name.removesuffix(".")
    problems = dns_subdomain_problems(trimmed)
    yield from (at.invalid(trimmed, text) for text in problems)
    if not problems and "." not in trimmed:
        text = "should be a domain with at least two segments separated by dots"
        yield at.invalid(trimmed, text)


def _hints(hints: Obj, at: Path) -> Errors:
    checks = (("forZones", label_value_problems), ("forNodes", dns_subdomain_problems))
    for part, problems in checks:
        names = [entry["name"] for entry in hints.get(part) or ()]
        if len(names) > _MOST_HINTS:
            yield at.child(part).too_many(len(names), _MOST_HINTS)
            return
        for position, name in enumerate(names):
            here = at.child(part).index(position).child("name")
            if name in names[:position]:
                yield here.duplicate(name)
            yield from formatted(name, problems, here)


def _shown_ports(obj: Obj) -> str:
    ports = obj.get("ports") or ()
    return with_more([str(port.get("port", port.get("name", "*"))) for port in ports])


def _shown_endpoints(obj: Obj) -> str:
    endpoints = obj.get("endpoints") or ()
    return with_more([address for endpoint in endpoints for address in endpoint["addresses"] or ()])


ENDPOINT_SLICES = ResourceType(
    group="discovery.k8s.io",
    kind="EndpointSlice",
    plural="endpointslices",
    singular="endpointslice",
    namespaced=True,
    versions=(Version("v1", DISCOVERY),),
    strategy=EndpointSliceStrategy(),
    columns=(
        NAME,
        Column(
            "AddressType",
            plain(lambda obj: obj["addressType"] or UNSET),
            description="Type of the addresses.",
        ),
        Column("Ports", plain(_shown_ports), description="Ports of the endpoints."),
        Column("Endpoints", plain(_shown_endpoints), description="Addresses of the endpoints."),
        AGE,
    ),
)
