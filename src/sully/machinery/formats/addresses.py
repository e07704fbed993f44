"""Addresses to which no request that a configuration or a policy specifies may go."""

from ipaddress import IPv6Address, ip_address

REFUSED_ADDRESS = "must not be a link-local, multicast or unspecified address"


def is_refused(address: str) -> bool:
    """Report whether nothing may be sent to an address: clouds serve credentials there.

    A name is no address: its addresses are checked when it is resolved.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return parsed.is_link_local or parsed.is_multicast or parsed.is_unspecified
