"""How users select objects: device patterns, label selectors, and KIND/NAME.

`rule a`, `rule/a` as our tables print it, and `devicetaintrule.resource.k8s.io/a` as
`kubectl get -o name` prints it, are the same.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from sully.cli.command import CommandError
from sully.cli.selection.globs import ANY, glob_matches

if TYPE_CHECKING:
    from sully.machinery.selectors.labels import Selector


class Pattern(msgspec.Struct, frozen=True):
    """Which devices to select; `*` matches any name."""

    driver: str = ANY
    pool: str = ANY
    device: str = ANY

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"

    def matches(self, driver: str, pool: str, device: str) -> bool:
        """Report whether the pattern selects a device."""
        return (
            glob_matches(self.driver, driver)
            and glob_matches(self.pool, pool)
            and glob_matches(self.device, device)
        )

    def matches_pool(self, driver: str, pool: str) -> bool:
        """Report whether the pattern may select a device of a pool."""
        return glob_matches(self.driver, driver) and glob_matches(self.pool, pool)

    def overlaps(self, driver: str | None, pool: str | None, device: str | None) -> bool:
        """Report whether a selector with these names can select a device of the pattern.

        None matches every name.
        """
        pairs = ((self.driver, driver), (self.pool, pool), (self.device, device))
        return all(name is None or glob_matches(part, name) for part, name in pairs)


class Patterns(msgspec.Struct, frozen=True):
    """Several patterns, of which a device needs to match one."""

    patterns: tuple[Pattern, ...]

    def matches(self, driver: str, pool: str, device: str) -> bool:
        """Report whether one of them selects a device."""
        return any(x.matches(driver, pool, device) for x in self.patterns)

    def matches_pool(self, driver: str, pool: str) -> bool:
        """Report whether one of them may select a device of a pool."""
        return any(x.matches_pool(driver, pool) for x in self.patterns)

    def overlaps(self, driver: str | None, pool: str | None, device: str | None) -> bool:
        """Report whether a selector with these names can select a device of one of them."""
        return any(x.overlaps(driver, pool, device) for x in self.patterns)


def parse_pattern(text: str) -> Pattern:
    """Parse `driver/pool/device`; parts that are left out at the end are `*`.

    The name of a pool may itself have slashes, so everything between the first and the last one
    belongs to it.
    """
    parts = text.split("/")
    if not all(parts):
        raise CommandError(
            f'invalid device pattern "{text}" (DRIVER/POOL/DEVICE, each a name or a glob)', code=2
        )
    if len(parts) < 3:
        return Pattern(*parts)
    return Pattern(parts[0], "/".join(parts[1:-1]), parts[-1])


def parse_patterns(texts: Iterable[str]) -> tuple[Pattern, ...]:
    """Parse patterns, of which a device needs to match one; no pattern selects all devices."""
    return tuple(dict.fromkeys(map(parse_pattern, texts))) or (Pattern(),)


def read_selector(text: str) -> "Selector":
    """Parse the value of `-l`; an empty one selects everything."""
    from sully.machinery.selectors.labels import SelectorError, parse

    try:
        return parse(text)
    except SelectorError as error:
        raise CommandError(f"-l {text}: {error}", code=2) from error


ALIASES = {
    "pod": ("po", "pods"),
    "claim": ("claims", "resourceclaim", "resourceclaims"),
    "device": ("dev", "devices"),
    "rule": ("rules", "devicetaintrule", "devicetaintrules"),
    "patch": ("patches", "resourceslicepatch", "resourceslicepatches"),
    "node": ("no", "nodes"),
    "deployment": ("deploy", "deployments"),
    "replicaset": ("rs", "replicasets"),
    "statefulset": ("sts", "statefulsets"),
    "daemonset": ("ds", "daemonsets"),
    "job": ("jobs",),
    "placement": ("placements",),
    "policy": ("policies", "devicetaintpolicy", "devicetaintpolicies", "dtp"),
    "maintenance": ("maintenances", "devicemaintenance", "devicemaintenances", "dm"),
    "cluster": ("clusters", "managedcluster", "managedclusters", "mcl"),
}


def named(kind: str, name: str = "") -> tuple[str, str]:
    """Return kind and name; an unknown kind is returned as it is."""
    if not name:
        kind, _, name = kind.partition("/")
    word = kind.lower().partition(".")[0]
    for short, aliases in ALIASES.items():
        if word in (short, *aliases):
            return short, name
    return kind, name


def rule_named(text: str) -> str:
    """Return the name of a rule from NAME, rule/NAME or the full name that kubectl prints."""
    kind, name = named(text)
    return name if kind == "rule" and name else text
