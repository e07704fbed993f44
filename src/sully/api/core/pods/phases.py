"""The phases of pods that do not run any more."""

from typing import Any, Final

TERMINAL_PHASES: Final = frozenset(("Succeeded", "Failed"))


def is_terminal(pod: dict[str, Any]) -> bool:
    """Report whether all containers of a pod have terminated for good."""
    return (pod.get("status") or {}).get("phase") in TERMINAL_PHASES
