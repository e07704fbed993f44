"""IP addresses and networks.

Addresses must be written out: no zones, and no IPv4 address dressed up as IPv6.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from sully.machinery.cel import types
from sully.machinery.cel.declarations import Library, library
from sully.machinery.cel.errors import EvaluationError
from sully.machinery.cel.library.standard import Row
from sully.machinery.cel.values import register

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface
IP: Final = types.opaque("net.IP")
CIDR: Final = types.opaque("net.CIDR")

_PARSE: Final = "parse error during conversion from string"


class Cidr:
    """A network with the address it was written with: `10.0.0.1/8` is not `10.0.0.0/8`."""

    __slots__ = ("interface",)

    def __init__(self, interface: Interface) -> None:
        self.interface = interface

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cidr) and self.interface == other.interface

    def __hash__(self) -> int:
        return hash(self.interface)

    def __str__(self) -> str:
        return str(self.interface)


register(ipaddress.IPv4Address, IP)
register(ipaddress.IPv6Address, IP)
register(Cidr, CIDR)


def _ip(text: str) -> Address:
    if "%" in text:
        raise EvaluationError(f"IP Address '{text}' with zone value is not allowed")
    if ":" in text and "." in text:
        raise EvaluationError("IPv4-mapped IPv6 address is not allowed")
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise EvaluationError(f"IP Address '{text}' {_PARSE}") from None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _is_ip(text: str) -> bool:
    try:
        _ip(text)
    except EvaluationError:
        return False
    return True


def _is_canonical(text: str) -> bool:
    return str(_ip(text)) == text


def _cidr(text: str) -> Cidr:
    address, _, prefix = text.partition("/")
    if "%" in address:
        raise EvaluationError("CIDR with zone value is not allowed")
    if ":" in address and "." in address:
        raise EvaluationError("IPv4-mapped IPv6 address is not allowed")
    if not prefix.isdecimal() or not prefix.isascii() or (len(prefix) > 1 and prefix[0] == "0"):
        raise EvaluationError(f"network address {_PARSE}")
    try:
        return Cidr(ipaddress.ip_interface(text))
    except ValueError:
        raise EvaluationError(f"network address {_PARSE}") from None


def _is_cidr(text: str) -> bool:
    try:
        _cidr(text)
    except EvaluationError:
        return False
    return True


def _contains_ip(network: Cidr, address: Address | str) -> bool:
    return (_ip(address) if isinstance(address, str) else address) in network.interface.network


def _contains_cidr(network: Cidr, other: Cidr | str) -> bool:
    inner = (_cidr(other) if isinstance(other, str) else other).interface.network
    outer = network.interface.network
    if isinstance(outer, ipaddress.IPv4Network) and isinstance(inner, ipaddress.IPv4Network):
        return inner.subnet_of(outer)
    if isinstance(outer, ipaddress.IPv6Network) and isinstance(inner, ipaddress.IPv6Network):
        return inner.subnet_of(outer)
    return False


def _masked(network: Cidr) -> Cidr:
    bare = network.interface.network
    return Cidr(ipaddress.ip_interface(f"{bare.network_address}/{bare.prefixlen}"))


def _is_global_unicast(address: Address) -> bool:
    broadcast = address == ipaddress.IPv4Address("255.255.255.255")
    special = address.is_unspecified or address.is_loopback or address.is_multicast
    return not (broadcast or special or address.is_link_local)


def _is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.IPv4Network("224.0.0.0/24")
    return address.is_multicast and address.packed[1] & 0x0F == 2


def _address_rows() -> Iterator[Row]:
    yield "string_to_ip", "ip(string) -> net.IP", _ip
    yield "is_ip", "isIP(string) -> bool", _is_ip
    yield "ip_is_canonical", "ip.isCanonical(string) -> bool", _is_canonical
    yield "ip_to_string", "string(net.IP) -> string", str
    yield "ip_family", "net.IP:family() -> int", lambda address: address.version
    yield "ip_is_unspecified", "net.IP:isUnspecified() -> bool", lambda a: a.is_unspecified
    yield "ip_is_loopback", "net.IP:isLoopback() -> bool", lambda a: a.is_loopback
    yield (
        "ip_is_link_local_multicast",
        "net.IP:isLinkLocalMulticast() -> bool",
        _is_link_local_multicast,
    )
    yield (
        "ip_is_link_local_unicast",
        "net.IP:isLinkLocalUnicast() -> bool",
        lambda address: address.is_link_local,
    )
    yield "ip_is_global_unicast", "net.IP:isGlobalUnicast() -> bool", _is_global_unicast


def _network_rows() -> Iterator[Row]:
    yield "string_to_cidr", "cidr(string) -> net.CIDR", _cidr
    yield "is_cidr", "isCIDR(string) -> bool", _is_cidr
    yield "cidr_to_string", "string(net.CIDR) -> string", str
    yield "cidr_contains_ip_string", "net.CIDR:containsIP(string) -> bool", _contains_ip
    yield "cidr_contains_ip_ip", "net.CIDR:containsIP(net.IP) -> bool", _contains_ip
    yield "cidr_contains_cidr_string", "net.CIDR:containsCIDR(string) -> bool", _contains_cidr
    yield "cidr_contains_cidr", "net.CIDR:containsCIDR(net.CIDR) -> bool", _contains_cidr
    yield "cidr_ip", "net.CIDR:ip() -> net.IP", lambda network: network.interface.ip
    yield (
        "cidr_prefix_length",
        "net.CIDR:prefixLength() -> int",
        lambda network: network.interface.network.prefixlen,
    )
    yield "cidr_masked", "net.CIDR:masked() -> net.CIDR", _masked


def network() -> Library:
    """Return the library of addresses and networks."""
    return library((*_address_rows(), *_network_rows()), {IP.name: IP, CIDR.name: CIDR})
