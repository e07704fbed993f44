"""Formats of names in this group: drivers, pools, devices, requests, attributes.

Each function yields what is wrong with a name at a path. Limits count bytes.
"""

import re

from sully.api.core.checks import DRIVER_MAX, driver_name
from sully.api.resource.checks import Errors
from sully.machinery.compat import Compat
from sully.machinery.fields import Path
from sully.machinery.formats.names import (
    c_identifier_problems,
    caseless_subdomain_problems,
    dns_label_problems,
    dns_subdomain_problems,
    label_key_problems,
    label_value_problems,
)

POOL_MAX = 253
IDENTIFIER_MAX = 32
QUALIFIED_MAX = DRIVER_MAX + 1 + IDENTIFIER_MAX

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
REFERENCE_TEXT = (
    "must be the name of a request in the claim or the name of a request and a subrequest"
    " separated by '/'"
)


def validate_label_key(key: str, at: Path) -> Errors:
    """Check a taint key, condition type or binding condition; empty is wrong."""
    for text in label_key_problems(key):
        yield at.invalid(key, text)


def validate_label_value(value: str, at: Path) -> Errors:
    """Check the value of a taint or toleration."""
    for text in label_value_problems(value):
        yield at.invalid(value, text)


def validate_dns_label(name: str, at: Path) -> Errors:
    """Check the name of a device, request or counter."""
    for text in dns_label_problems(name):
        yield at.invalid(name, text)


def validate_subdomain(name: str, at: Path) -> Errors:
    """Check a DNS subdomain."""
    for text in dns_subdomain_problems(name):
        yield at.invalid(name, text)


def validate_short_name(name: str, at: Path) -> Errors:
    """Check the declared format `k8s-short-name`: counter sets and their counters."""
    for text in dns_label_problems(name, unit="bytes"):
        yield at.invalid(name, text)


def validate_class_name(name: str, at: Path) -> Errors:
    """Check a reference to a device class."""
    if not name:
        yield at.required()
    else:
        yield from validate_subdomain(name, at)


def validate_long_name(name: str, at: Path) -> Errors:
    """Check the declared format `k8s-long-name` of a field that is required."""
    if not name:
        yield at.required()
        return
    for text in dns_subdomain_problems(name, unit="bytes"):
        yield at.invalid(name, text)


def validate_declared_driver_name(name: str, at: Path, *, length_first: bool = False) -> Errors:
    """Check the name of a driver where its length is declared too."""
    too_long = [at.too_many_characters(DRIVER_MAX)] if len(name) > DRIVER_MAX else []
    if length_first:
        yield from too_long
    yield from validate_caseless_name(name, at)
    if not length_first:
        yield from too_long


def validate_caseless_name(name: str, at: Path) -> Errors:
    """Check the declared format `k8s-long-name-caseless` of a field that is required."""
    if not name:
        yield at.required()
        return
    for text in caseless_subdomain_problems(name):
        yield at.invalid(name, text)


def validate_pool_name(name: str, at: Path) -> Errors:
    """Check the name of a pool: subdomains with slashes between them."""
    if not name:
        yield at.required()
        return
    if len(name.encode()) > POOL_MAX:
        yield at.too_long(POOL_MAX)
    for part in name.split("/"):
        yield from validate_subdomain(part, at)


def validate_pool_segments(name: str, at: Path) -> Errors:
    """Check the name of a pool as the schema does, which names the part that is wrong."""
    if not name:
        yield at.required()
        return
    if len(name.encode()) > POOL_MAX:
        yield at.too_long(POOL_MAX)
    for position, part in enumerate(name.split("/")):
        if not part:
            yield at.invalid(name, f"segment {position}: must not be empty")
            continue
        for text in dns_subdomain_problems(part, unit="bytes"):
            yield at.invalid(part, f"segment {position}: {text}")


def validate_node_name(name: str, at: Path) -> Errors:
    yield from validate_subdomain(name, at)


def validate_uuid(uid: str, at: Path) -> Errors:
    """Check the identity of a share."""
    if not _UUID.fullmatch(uid):
        yield at.invalid(uid, "must be a lowercase UUID in 8-4-4-4-12 format")


def validate_identifier(name: str, at: Path) -> Errors:
    """Check the last part of an attribute's name."""
    if len(name.encode()) > IDENTIFIER_MAX:
        yield at.too_long(IDENTIFIER_MAX)
    for text in c_identifier_problems(name):
        yield at.invalid(name, text)


def validate_qualified_name(name: str, at: Path, compat: Compat) -> Errors:
    """Check the name of an attribute or capacity, with or without a domain."""
    domain, slash, identifier = name.partition("/")
    if "/" in identifier:
        # Kubernetes 1.37 accepts such names, and nothing can then refer to them.
        if compat.rejects_double_slashes:
            yield at.invalid(name, "must not contain more than one slash")
        return
    if not slash:
        yield from validate_identifier(name, at)
        return
    if domain:
        yield from driver_name(domain, at)
    else:
        yield at.invalid("", "the domain must not be empty")
    if identifier:
        yield from validate_identifier(identifier, at)
    else:
        yield at.invalid("", "the name must not be empty")


def validate_fully_qualified_name(name: str, at: Path, compat: Compat) -> Errors:
    """Check `k8s-resource-fully-qualified-name`, a declared format: an attribute with a domain."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        yield from validate_identifier(name, at)
        text = "a fully qualified name must be a domain and a name separated by a slash"
        yield at.invalid(name, text)
    elif "/" not in identifier:
        yield from _domain(domain, at)
        if identifier:
            yield from validate_identifier(identifier, at)
        else:
            yield at.invalid("", "name must not be empty")
    elif compat.rejects_double_slashes:
        # Kubernetes 1.37 accepts such names, and nothing can then refer to them.
        yield at.invalid(name, "must not contain more than one slash")


def _domain(domain: str, at: Path) -> Errors:
    if not domain:
        yield at.invalid("", "prefix must not be empty")
        return
    if len(domain.encode()) > DRIVER_MAX:
        yield at.too_long(DRIVER_MAX)
    for text in dns_subdomain_problems(domain, unit="bytes"):
        yield at.invalid(domain, f"prefix: {text}")


def validate_request_reference(name: str, at: Path, known: dict[str, frozenset[str]]) -> Errors:
    """Check a reference to a request, or to one of its alternatives, of the same claim."""
    parts = name.split("/")
    if len(parts) > 2:
        yield at.invalid(name, REFERENCE_TEXT)
        return
    for part in parts:
        yield from validate_dns_label(part, at)
    alternatives = known.get(parts[0])
    if alternatives is None or (len(parts) == 2 and parts[1] not in alternatives):
        yield at.invalid(name, REFERENCE_TEXT)
