"""The proxy of a server from the environment, where the kubeconfig names none.

The rules are kubectl's: HTTPS_PROXY and HTTP_PROXY by the scheme of the server, and NO_PROXY with
names, domains, addresses and networks, each with a port or without. Loopback addresses never use
a proxy.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from sully.client.kubeconfig.credentials import AccessError

_PORTS = {"http": 80, "https": 443}
Address = IPv4Address | IPv6Address


def proxy_for(url: str, env: Mapping[str, str]) -> str | None:
    """Return the proxy for a URL, None for a direct connection."""
    parts = urlsplit(url)
    proxy = _variable(env, f"{parts.scheme}_proxy")
    if not proxy or _is_loopback(parts) or _is_excepted(parts, _variable(env, "no_proxy")):
        return None
    return supported_proxy(proxy, f"the environment's {parts.scheme.upper()}_PROXY")


def supported_proxy(text: str, origin: str) -> str:
    """Return the URL of a proxy if it is supported; without a scheme it is http."""
    url = text if "://" in text else f"http://{text}"
    if not url.startswith(("http://", "https://")):
        raise AccessError(f"{origin} is {text}; only http and https work")
    if not is_address(url):
        raise AccessError(f"{origin} is {text}; write it as http://127.0.0.1:3128")
    return url


def is_address(url: str) -> bool:
    """Report whether this is a valid HTTP URL."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # Unbalanced brackets, or an invalid port.
        return False


def _variable(env: Mapping[str, str], name: str) -> str:
    return env.get(name) or env.get(name.upper()) or ""


def _address(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _is_loopback(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _is_excepted(parts: SplitResult, exceptions: str) -> bool:
    return any(
        _excepts(entry.strip().lower(), parts) for entry in exceptions.split(",") if entry.strip()
    )


def _excepts(entry: str, parts: SplitResult) -> bool:
    host = (parts.hostname or "").lower()
    address = _address(host)
    if entry == "*":
        return True
    if "/" in entry:
        return address is not None and _is_within(address, entry)
    name, colon, port = entry.rpartition(":")
    # An address of version 6 has colons of its own, and a port only behind brackets.
    if colon and port.isdigit() and (":" not in name or name.endswith("]")):
        if int(port) != (parts.port or _PORTS[parts.scheme]):
            return False
        entry = name
    entry = entry.strip("[]")
    if address is not None:
        return _address(entry) == address
    bare = entry.removeprefix("*").removeprefix(".")
    return host.endswith(f".{bare}") or (entry == bare and host == bare)


def _is_within(address: Address, text: str) -> bool:
    try:
        return address in ip_network(text, strict=False)
    except ValueError:
        return False
