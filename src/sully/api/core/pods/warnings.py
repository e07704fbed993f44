"""What is allowed in a pod but probably a mistake."""

from collections.abc import Iterator
from typing import Any

from sully.api.core.pods.selection_warnings import selection_warnings
from sully.machinery.fields import Path
from sully.machinery.formats.quantity import parse_quantity
from sully.machinery.serialization.gotext import quote

Obj = dict[str, Any]

_BYTES = ("memory", "ephemeral-storage")
_SORTS = ("initContainers", "containers", "ephemeralContainers")


def spec_warnings(spec: Obj, at: Path) -> Iterator[str]:
    """Yield warnings about a pod spec, in a pod or in a template."""
    containers = [
        (container, at.child(sort).index(position))
        for sort in _SORTS
        for position, container in enumerate(spec.get(sort) or ())
    ]
    for container, here in containers:
        yield from _fractions(container, here)
        yield from _hidden_variables(container, here)
    yield from selection_warnings(spec, at)
    yield from _references(spec, at)
    yield from _ports(containers)
    yield from _port_names(containers)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{at.child('terminationGracePeriodSeconds')}: {text}"


def _references(spec: Obj, at: Path) -> Iterator[str]:
    seen: set[str] = set()
    for position, alias in enumerate(spec.get("hostAliases") or ()):
        if alias.get("ip", "") in seen:
            here = at.child("hostAliases").index(position).child("ip")
            yield f"{here}: duplicate ip {quote(alias.get('ip', ''))}"
        seen.add(alias.get("ip", ""))
    names = [secret.get("name", "") for secret in spec.get("imagePullSecrets") or ()]
    here = at.child("imagePullSecrets")
    for position, name in enumerate(names):
        if name in names[:position]:
            yield f"{here.index(position).child('name')}: duplicate name {quote(name)}"
    for position, name in enumerate(names):
        if not name:
            yield f'{here.index(position).child("name")}: invalid empty name ""'


def _port_names(containers: list[tuple[Obj, Path]]) -> Iterator[str]:
    taken: dict[str, Path] = {}
    for container, at in containers:
        for position, port in enumerate(container.get("ports") or ()):
            name, here = port.get("name", ""), at.child("ports").index(position)
            if name in taken:
                first = taken[name]
                text = f"duplicate port name {quote(name)} with {first}"
                yield (
                    f"{here}: {text}, services and probes that select ports by name will use"
                    f" {first}"
                )
            elif name:
                taken[name] = here


def _fractions(container: Obj, at: Path) -> Iterator[str]:
    for field in ("limits", "requests"):
        amounts = container["resources"].get(field) or {}
        for name in _BYTES:
            if name in amounts and not parse_quantity(amounts[name]).is_integer():
                here = at.child("resources", field).key(name)
                text = f"fractional byte value {quote(amounts[name])} is invalid"
                yield f"{here}: {text}, must be an integer"


def _hidden_variables(container: Obj, at: Path) -> Iterator[str]:
    seen: set[str] = set()
    for position, variable in enumerate(container.get("env") or ()):
        name, value = variable.get("name", ""), variable.get("value", "")
        itself = f"$({name})"
        # A second definition may refer to the earlier value.
        extends = itself in value and value != itself and "valueFrom" not in variable
        if name in seen and not extends:
            here = at.child("env").index(position)
            text = f"hides previous definition of {quote(name)}"
            yield f"{here}: {text}, which may be dropped when using apply"
        seen.add(name)


def _ports(containers: list[tuple[Obj, Path]]) -> Iterator[str]:
    taken: dict[tuple[int, str], list[tuple[Path, Obj]]] = {}
    for container, at in containers:
        for position, port in enumerate(container.get("ports") or ()):
            here = at.child("ports").index(position)
            if port.get("hostIP") and not port.get("hostPort"):
                yield f"{here}: hostIP set without hostPort: {_shown_port(port)}"
            others = taken.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
            for place, other in others:
                verdict = _overlap(port, other)
                if verdict:
                    yield f"{here}: {verdict} port definition with {place}"
            others.append((here, port))


def _shown_port(port: Obj) -> str:
    """Return a port as Go prints it."""
    fields = ("name", "hostPort", "containerPort", "protocol", "hostIP")
    zeros = {"hostPort": 0, "containerPort": 0}
    shown = (f"{n[0].upper()}{n[1:]}:{port.get(n, zeros.get(n, ''))}" for n in fields)
    return "{" + " ".join(shown) + "}"


def _overlap(port: Obj, other: Obj) -> str:
    (ip, number), (other_ip, other_number) = (
        (one.get("hostIP", ""), one.get("hostPort", 0)) for one in (port, other)
    )
    if (ip, number) == (other_ip, other_number):
        return "duplicate"
    if not number or not other_number:
        return "overlapping"
    ambiguous = number == other_number and bool(ip) != bool(other_ip)
    return "dangerously ambiguous" if ambiguous else ""
