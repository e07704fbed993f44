"""What `sully install` has installed on a server, by the Deployment of its controllers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from sully.domain.capabilities.duties import ControllerChoice, Evictor
from sully.machinery.meta import ObjectMeta, Wire

_EVICTORS: tuple[Evictor, ...] = ("auto", "server", "sully")


class InstalledContainer(Wire, frozen=True, kw_only=True):
    """The flags of a container."""

    args: tuple[str, ...] = ()


class InstalledPodSpec(Wire, frozen=True, kw_only=True):
    """The containers of the controllers."""

    containers: tuple[InstalledContainer, ...] = ()


class InstalledPod(Wire, frozen=True, kw_only=True):
    """The template of their pods."""

    spec: InstalledPodSpec = InstalledPodSpec()


class InstalledSpec(Wire, frozen=True, kw_only=True):
    """What is to run."""

    template: InstalledPod = InstalledPod()


class ControllersDeployment(Wire, frozen=True, kw_only=True):
    """The Deployment of the controllers, by its flags."""

    metadata: ObjectMeta = ObjectMeta()
    spec: InstalledSpec = InstalledSpec()

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the flags of the controllers."""
        containers = self.spec.template.spec.containers
        return containers[0].args if containers else ()


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """Which controllers are installed."""

    evictor: Evictor = "auto"
    only: frozenset[str] | None = None
    """The controllers that were selected by name; None: those that the server does not run."""


def read_arguments(arguments: Sequence[str]) -> Installation:
    """Read the flags of `sully controllers`."""
    flags: dict[str, str] = {}
    for index, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        # A flag may also be followed by its value.
        flags[name] = value if equals else next(iter(arguments[index + 1 :]), "")
    only = frozenset(filter(None, flags.get("--only", "").split(",")))
    evictor = flags.get("--evictor", "")
    known: Evictor = next((choice for choice in _EVICTORS if choice == evictor), "auto")
    return Installation(evictor=known, only=only or None)


def selected(
    choices: Iterable[ControllerChoice], only: frozenset[str] | None
) -> tuple[ControllerChoice, ...]:
    """Return the choices where only some controllers were requested by name."""
    return tuple(choice if only is None else _selected(choice, only) for choice in choices)


def _selected(choice: ControllerChoice, only: frozenset[str]) -> ControllerChoice:
    if choice.name not in only:
        return replace(choice, runs=False, why="not in --only") if choice.runs else choice
    return replace(choice, runs=True, why="named in --only") if choice.if_requested else choice
