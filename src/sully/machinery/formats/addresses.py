"""IP addresses: ranges, and those to which no request of a configuration or policy may go."""

from ipaddress import IPv6Address, ip_address, ip_network

REFUSED_ADDRESS = "must not be a link-local, multicast or unspecified address"


def is_cidr(text: str) -> bool:
    """Report whether a text is a range of IP addresses."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def is_refused(address: str) -> bool:
    """Report whether nothing may be sent to an address: clouds serve credentials there.

    A name is not an address: its addresses are checked when it is resolved.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return parsed.is_link_local or parsed.is_multicast or parsed.is_unspecified
