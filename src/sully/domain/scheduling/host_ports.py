"""Host ports: a node has each port of an address and protocol once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

from sully.domain.scheduling.filters import NodeFilter, NodeInfo, NodeReason, Rejection
from sully.domain.scheduling.objects import Container, Pod, PodSpec

ALL_ADDRESSES: Final = "0.0.0.0"


class HostPort(NamedTuple):
    """A port of a node."""

    ip: str
    protocol: str
    port: int


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the ports of its node that a pod takes as long as it runs."""
    return tuple(_ports(spec))


def _ports(spec: PodSpec) -> Iterator[HostPort]:
    for container in spec.containers:
        yield from _container_ports(container)
    for container in spec.init_containers:
        # Other init containers end before the pod runs.
        if container.is_sidecar:
            yield from _container_ports(container)


def _container_ports(container: Container) -> Iterator[HostPort]:
    for port in container.ports:
        if port.host_port > 0:
            yield HostPort(port.host_ip or ALL_ADDRESSES, port.protocol or "TCP", port.host_port)


def conflicts(requested: HostPort, used: HostPort) -> bool:
    """Report whether two ports cannot both be taken on one node."""
    if (requested.protocol, requested.port) != (used.protocol, used.port):
        return False
    return requested.ip == used.ip or ALL_ADDRESSES in (requested.ip, used.ip)


def ports_filter(
    requested: Collection[HostPort], pods_on: Callable[[str], Iterable[Pod]]
) -> NodeFilter:
    """Return the filter for the host ports of a pod; `pods_on` returns the pods on a node."""
    rejection = Rejection((NodeReason.PORTS_IN_USE,), preemptible=True)

    def evaluate(node: NodeInfo) -> Rejection | None:
        used = (port for pod in pods_on(node.name) for port in host_ports(pod.spec))
        in_use = any(conflicts(port, other) for other in used for port in requested)
        return rejection if in_use else None

    return evaluate
