"""Which versions of the API are served, as `--runtime-config a/v1=true,a/v1beta1=false` sets it.

All are, unless configured otherwise: Kubernetes itself serves only finished ones by default, and
to test a program with that, users disable the others. The version of a
kind that is stored, and that controllers speak, stays in any case (`api.build_scheme`), unless it
is an alpha version and the only one: then the kind is not served at all, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

if TYPE_CHECKING:
    # Flags are read with this, and `--help` need not know what kinds are.
    from sully.machinery.strategy import ResourceType, Version

_STAGES = ("api/all", "api/ga", "api/beta", "api/alpha")
_OURS = "sully.dev"
_VALUES = {"": True, "true": True, "1": True, "false": False, "0": False}


class RuntimeConfigError(ValueError):
    """A version that does not exist or cannot be switched."""


class RuntimeConfig(msgspec.Struct, frozen=True):
    """The versions as switched for this process, by `group/version` or by `api/stage`."""

    requested: Mapping[str, bool] = msgspec.field(default_factory=dict)

    def applied(self, resource: ResourceType) -> ResourceType | None:
        """Return a resource with the versions in which it is to be served; None if in none."""
        if not self.requested:
            return resource
        stored, *others = resource.versions
        if _is_optional(resource) and not self._serves(resource.group, stored):
            return None
        switched = (replace(other, enabled=self._serves(resource.group, other)) for other in others)
        return replace(resource, versions=(stored, *switched))

    def _serves(self, group: str, version: Version) -> bool:
        explicit = self.requested.get(f"{group}/{version.name}")
        if explicit is not None or version.structural:
            # Stages are of what Kubernetes has built in; these kinds are custom resources there.
            return explicit is not False
        return self.requested.get(f"api/{_stage(version)}", self.requested.get("api/all", True))

    def check(self, resources: Iterable[ResourceType]) -> None:
        """Refuse names of versions that there are not, and what cannot be switched off."""
        hubs: set[str] = set()
        others: set[str] = set()
        for resource in resources:
            for index, version in enumerate(resource.versions):
                known = others if index else hubs
                known.add(f"{resource.group}/{version.name}")
        for name, on in self.requested.items():
            if name in _STAGES or name in others:
                continue
            if name not in hubs:
                choices = ", ".join(sorted(others))
                raise RuntimeConfigError(
                    f"--runtime-config: unknown version {shown(name)} (one of: {choices},"
                    f" {', '.join(_STAGES)})"
                )
            if not on:
                raise RuntimeConfigError(
                    f"--runtime-config: {shown(name)} cannot be switched off: its kinds are stored"
                    " in it, and controllers use it"
                )


def _is_optional(resource: ResourceType) -> bool:
    """Report whether a kind need not be served: Kubernetes has it only in an unfinished version."""
    stored, *others = resource.versions
    finished = _stage(stored) == "ga"
    return not (others or finished or stored.structural or resource.group == _OURS)


def _stage(version: Version) -> str:
    return next((name for name in ("alpha", "beta") if name in version.name), "ga")


def shown(name: str) -> str:
    """Write the name of a version as users do, who call that of the core group `api/v1`."""
    return f"api{name}" if name.startswith("/") else name


def parse_runtime_config(text: str) -> RuntimeConfig:
    """Parse `a/v1=true,api/beta=false`; a name alone means true."""
    requested = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, value = part.partition("=")
        if value.lower() not in _VALUES:
            raise RuntimeConfigError(
                f'--runtime-config: {name} must be true or false, not "{value}"'
            )
        core = name.startswith("api/v")
        requested[name.removeprefix("api") if core else name] = _VALUES[value.lower()]
    return RuntimeConfig(requested)
