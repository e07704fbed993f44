"""Ports of containers, and the fields that refer to them by number or name."""

import re
from collections.abc import Iterable
from typing import Any

from sully.api.core.checks import Errors, between, formatted, one_of
from sully.machinery.fields import Path

Obj = dict[str, Any]

_NAME_MAX = 15
_CHARACTERS = re.compile(r"[-a-z0-9]+")
_LETTER = re.compile(r"[a-z]")


def port_name_problems(name: str) -> list[str]:
    problems = []
    if len(name.encode()) > _NAME_MAX:
        problems.append(f"must be no more than {_NAME_MAX} characters")
    if not _CHARACTERS.fullmatch(name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _LETTER.search(name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name and "-" in (name[0], name[-1]):
        problems.append("must not begin or end with a hyphen")
    return problems


def port_number(value: int, at: Path) -> Errors:
    return between(value, 1, 65535, at)


def port_reference(value: int | str, at: Path) -> Errors:
    """Check a port that is given by number or by name."""
    if isinstance(value, int):
        yield from port_number(value, at)
    else:
        yield from formatted(value, port_name_problems, at)


def ports(values: list[Obj], at: Path) -> Errors:
    """Check the ports of one container."""
    names: set[str] = set()
    for position, port in enumerate(values):
        here = at.index(position)
        name = port.get("name", "")
        problems = port_name_problems(name) if name else []
        for text in problems:
            yield here.child("name").invalid(name, text)
        if name and not problems and name in names:
            yield here.child("name").duplicate(name)
        names.add(name)
        if not port.get("containerPort"):
            yield here.child("containerPort").required()
        else:
            yield from port_number(port["containerPort"], here.child("containerPort"))
        if port.get("hostPort"):
            yield from port_number(port["hostPort"], here.child("hostPort"))
        protocol = port.get("protocol", "")
        yield from one_of(protocol, ("TCP", "UDP", "SCTP"), here.child("protocol"), required=True)


def host_ports(containers: Iterable[Obj], at: Path) -> Errors:
    """Find host ports that two containers use."""
    taken: set[str] = set()
    for position, container in enumerate(containers):
        for index, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            place = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if place in taken:
                here = at.index(position).child("ports").index(index)
                yield here.child("hostPort").duplicate(place)
            taken.add(place)


def host_network_ports(containers: Iterable[Obj], at: Path) -> Errors:
    """Check that ports are the same inside and outside where the node's network is used."""
    for position, container in enumerate(containers):
        for index, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort", 0) != port.get("containerPort", 0):
                here = at.index(position).child("ports").index(index)
                yield here.child("hostPort").invalid(
                    port.get("hostPort", 0),
                    "must match `containerPort` when `hostNetwork` is true",
                )
