"""The grammar of taints on a command line: `KEY[=VALUE]:EFFECT`, and with a dash to remove.

As kubectl has it for nodes. The server validates names; here the text is only split, so that a
typo is reported before anything is sent.
"""

from __future__ import annotations

from difflib import get_close_matches

import msgspec

from sully.domain.devices.taints import EFFECTS
from sully.domain.tolerations import taint_text

DEVICE_EFFECTS = tuple(EFFECTS)
CLUSTER_EFFECTS = ("NoSelect", "PreferNoSelect", "NoSelectIfNew")


class TaintSyntaxError(ValueError):
    """A text that is not a taint."""


class TaintEffectError(TaintSyntaxError):
    """A taint without an effect, or with one that does not exist."""


class TaintToAdd(msgspec.Struct, frozen=True):
    """A taint to set."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        """Return it as it is written on a command line."""
        return taint_text(self)


class TaintToRemove(msgspec.Struct, frozen=True):
    """Taints to remove: all with a key, or those with one effect."""

    key: str
    effect: str = ""

    def __str__(self) -> str:
        """Return it as it is written on a command line."""
        return f"{self.key}:{self.effect}-" if self.effect else f"{self.key}-"

    @property
    def taint(self) -> str:
        """Return key and effect, without the dash."""
        return str(self)[:-1]

    def matches(self, key: str, effect: str) -> bool:
        """Report whether a taint with this key and effect is removed."""
        return self.key == key and self.effect in ("", effect)


def parse_taint(text: str, effects: tuple[str, ...] = DEVICE_EFFECTS) -> TaintToAdd | TaintToRemove:
    """Parse a taint; raise TaintSyntaxError if it is invalid."""
    if text.endswith("-"):
        key, _, effect = text[:-1].partition(":")
        # kubectl accepts a value here too, and ignores it.
        key = key.partition("=")[0]
        _check(text, key, effect or effects[0], effects)
        return TaintToRemove(key, effect)
    key_value, colon, effect = text.rpartition(":")
    if not colon:
        raise TaintEffectError(
            f'invalid taint "{text}": no effect (KEY[=VALUE]:EFFECT, or KEY- to remove)'
        )
    key, _, value = key_value.partition("=")
    _check(text, key, effect, effects)
    return TaintToAdd(key, value, effect)


def is_taint(text: str) -> bool:
    """Report whether an argument is a taint; patterns have no colon, `=` or final dash."""
    return ":" in text or "=" in text or text.endswith("-")


def _check(text: str, key: str, effect: str, effects: tuple[str, ...]) -> None:
    if not key:
        raise TaintSyntaxError(f'invalid taint "{text}": no key (KEY[=VALUE]:EFFECT)')
    if effect not in effects:
        known = {name.lower(): name for name in effects}
        similar = get_close_matches(effect.lower(), known, n=1, cutoff=0.75)
        hint = f' (did you mean "{known[similar[0]]}"?)' if similar else ""
        raise TaintEffectError(f'invalid taint "{text}": unknown effect "{effect}"{hint}')
