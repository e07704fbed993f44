"""How people name devices: driver/pool/device, each part a name or a glob."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sully.cli.client.calling import CommandError

ANY = "*"


@dataclass(frozen=True, slots=True)
class Pattern:
    """Which devices are meant; `*` leaves a part open."""

    driver: str = ANY
    pool: str = ANY
    device: str = ANY

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"

    def matches(self, driver: str, pool: str, device: str) -> bool:
        """Say whether a device is meant."""
        return fits(self.driver, driver) and fits(self.pool, pool) and fits(self.device, device)

    def matches_pool(self, driver: str, pool: str) -> bool:
        """Say whether any device of a pool can be meant."""
        return fits(self.driver, driver) and fits(self.pool, pool)

    def may_meet(self, driver: str | None, pool: str | None, device: str | None) -> bool:
        """Say whether a selector with these names can select a device that is meant.

        What the selector leaves open meets everything.
        """
        asked = ((self.driver, driver), (self.pool, pool), (self.device, device))
        return all(name is None or fits(part, name) for part, name in asked)


def parse_pattern(text: str) -> Pattern:
    """Read `driver/pool/device`; parts that are left out at the end are `*`.

    The name of a pool may itself have slashes, so everything between the first and the last one
    belongs to it.
    """
    parts = text.split("/")
    if not all(parts):
        raise CommandError(
            f"{text!r} names no devices; write DRIVER/POOL/DEVICE, with * for any of them", code=2
        )
    if len(parts) < 3:
        return Pattern(*parts)
    return Pattern(parts[0], "/".join(parts[1:-1]), parts[-1])


def parse_patterns(texts: Iterable[str]) -> tuple[Pattern, ...]:
    """Read several patterns, of which a device need fit but one; none at all mean any device."""
    return tuple(dict.fromkeys(parse_pattern(each) for each in texts)) or (Pattern(),)


def fits(part: str, name: str) -> bool:
    """Say whether one part of a pattern means a name."""
    return part in (ANY, name) or fnmatchcase(name, part)
