"""Endpoints: the addresses of a Service. Stored; no controller writes them."""

import ipaddress
from collections.abc import Iterator
from typing import Any

from sully.api.core.checks import (
    Errors,
    dns_label,
    dns_subdomain,
    label_key,
    one_of,
    same,
)
from sully.api.core.columns import AGE, NAME, NONE, plain
from sully.api.core.pods.spec.dns import NOT_AN_ADDRESS
from sully.machinery.fields import FieldError, Path
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

PROTOCOLS = ("SCTP", "TCP", "UDP")
_DEPRECATED = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
_RANGES = {
    "is_loopback": "may not be in the loopback range (127.0.0.0/8, ::1/128)",
    "is_link_local": "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
}
_MULTICAST = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
_LOCAL_MULTICAST = (ipaddress.ip_network("224.0.0.0/24"), ipaddress.ip_network("ff02::/16"))
_MOST_SHOWN = 3
_MOST_PORT = 65535


class EndpointsStrategy(Strategy, frozen=True):
    """Writes to endpoints."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in the protocol of ports."""
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                port["protocol"] = port.get("protocol") or "TCP"

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check addresses and ports."""
        for position, subset in enumerate(obj.get("subsets") or ()):
            yield from _subset(subset, Path("subsets").index(position))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check addresses and ports, if they change."""
        if not same(obj.get("subsets"), old.get("subsets")):
            yield from self.validate_create(obj, ctx)


def _subset(subset: Obj, at: Path) -> Errors:
    parts = ("addresses", "notReadyAddresses")
    if not any(subset.get(part) for part in parts):
        yield at.required("must specify `addresses` or `notReadyAddresses`")
    for part in parts:
        for position, address in enumerate(subset.get(part) or ()):
            yield from _address(address, at.child(part).index(position))
    ports = subset.get("ports") or []
    for position, port in enumerate(ports):
        yield from _port(port, at.child("ports").index(position), named=len(ports) > 1)


def _address(address: Obj, at: Path) -> Errors:
    yield from ip_address(address["ip"], at.child("ip"))
    if address.get("hostname"):
        yield from dns_label(address["hostname"], at.child("hostname"))
    if "nodeName" in address:
        yield from dns_subdomain(address["nodeName"], at.child("nodeName"))
    yield from endpoint_address(address["ip"], at.child("ip"))


def ip_address(text: str, at: Path) -> Errors:
    """Check that a text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        yield at.invalid(text, NOT_AN_ADDRESS)


def endpoint_address(text: str, at: Path) -> Errors:
    """Check that an address can be reached from other machines."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        yield at.invalid(text, "must be a valid IP address")
        return
    if address.is_unspecified:
        yield at.invalid(text, f"may not be unspecified ({text})")
    for attribute, problem in _RANGES.items():
        if getattr(address, attribute):
            yield at.invalid(text, problem)
    if any(address in network for network in _LOCAL_MULTICAST):
        yield at.invalid(text, _MULTICAST)


def _port(port: Obj, at: Path, *, named: bool) -> Errors:
    name = port.get("name", "")
    if named and not name:
        yield at.child("name").required()
    elif name:
        yield from dns_label(name, at.child("name"))
    if not 1 <= port["port"] <= _MOST_PORT:
        yield at.child("port").invalid(port["port"], "must be between 1 and 65535, inclusive")
    yield from one_of(port["protocol"], PROTOCOLS, at.child("protocol"), required=True)
    if "appProtocol" in port:
        yield from label_key(port["appProtocol"], at.child("appProtocol"))


def with_more(values: list[str], *, unset: str = "<unset>") -> str:
    """Return the first values of a list, and how many more there are."""
    text = ",".join(values[:_MOST_SHOWN])
    rest = len(values) - _MOST_SHOWN
    return f"{text} + {rest} more..." if rest > 0 else text or unset


def _shown(obj: Obj) -> str:
    subsets = obj.get("subsets")
    if not subsets:
        return NONE
    return with_more([value for subset in subsets for value in _sockets(subset)], unset="")


def _sockets(subset: Obj) -> Iterator[str]:
    addresses = [address["ip"] for address in subset.get("addresses") or ()]
    if not subset.get("ports"):
        yield from addresses
    for port in subset.get("ports") or ():
        for address in addresses:
            host = f"[{address}]" if ":" in address else address
            yield f"{host}:{port['port']}"


ENDPOINTS = ResourceType(
    group="",
    kind="Endpoints",
    plural="endpoints",
    singular="endpoints",
    namespaced=True,
    versions=(Version("v1", "io.k8s.api.core.v1", deprecation=_DEPRECATED),),
    strategy=EndpointsStrategy(),
    short_names=("ep",),
    create_on_update=True,
    columns=(NAME, Column("Endpoints", plain(_shown), description="Ready addresses."), AGE),
)
