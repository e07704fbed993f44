"""What is wrong with how the containers of a pod look up names."""

import ipaddress
import re
from typing import Any

from sully.api.core.checks import Errors
from sully.machinery.fields import Path

Obj = dict[str, Any]

NOT_AN_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NOT_A_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_MAX_SERVERS = 3
_MAX_SEARCHES = 32
_MAX_SEARCH_CHARACTERS = 2048
_MAX_NAME = 253
_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH_FORMAT = rf"{_LABEL}(\.{_LABEL})*"
_SEARCH = re.compile(_SEARCH_FORMAT)
_NO_SEARCH = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or"
    " '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used"
    f" for validation is '{_SEARCH_FORMAT}')"
)


def is_address(text: str) -> bool:
    """Report whether a text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def dns_config(spec: Obj, at: Path) -> Errors:
    """Check servers, search paths and options; with the policy None the pod must set them."""
    config: Obj | None = spec.get("dnsConfig")
    servers = (config or {}).get("nameservers") or []
    if spec.get("dnsPolicy") == "None" and config is None:
        yield at.required("must provide `dnsConfig` when `dnsPolicy` is None")
    elif spec.get("dnsPolicy") == "None" and not servers:
        text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield at.child("nameservers").required(text)
    elif config is not None:
        yield from _servers(servers, at.child("nameservers"))
        yield from _searches(config.get("searches") or [], at.child("searches"))
        for position, option in enumerate(config.get("options") or ()):
            if not option.get("name"):
                yield at.child("options").index(position).required("must not be empty")


def _servers(servers: list[str], at: Path) -> Errors:
    if len(servers) > _MAX_SERVERS:
        yield at.invalid(servers, f"must not have more than {_MAX_SERVERS} nameservers")
    for position, server in enumerate(servers):
        if not is_address(server):
            yield at.index(position).invalid(server, NOT_AN_ADDRESS)


def _searches(searches: list[str], at: Path) -> Errors:
    if len(searches) > _MAX_SEARCHES:
        yield at.invalid(searches, f"must not have more than {_MAX_SEARCHES} search paths")
    if len(" ".join(searches)) > _MAX_SEARCH_CHARACTERS:
        text = f"must not have more than {_MAX_SEARCH_CHARACTERS} characters (including spaces)"
        yield at.invalid(searches, f"{text} in the search list")
    for position, search in enumerate(searches):
        if search == ".":
            continue
        # A dot at the end makes the name fully qualified.
        name, here = search.removesuffix("."), at.index(position)
        if len(name) > _MAX_NAME:
            yield here.invalid(name, f"must be no more than {_MAX_NAME} characters")
        if not _SEARCH.fullmatch(name):
            yield here.invalid(name, _NO_SEARCH)
