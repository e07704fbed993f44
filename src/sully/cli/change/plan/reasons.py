"""Why pods are, or later would be, unschedulable, for the output of `sully plan`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from sully.domain.planning.report import PlannedEviction, UnmatchedRequest
    from sully.domain.scheduling.diagnosis import BlockingTaint, Diagnosis


def group_by_message(
    evictions: "Iterable[PlannedEviction]", limit: int | None
) -> list[tuple[tuple[str, ...], list[str]]]:
    """Group pods that are unschedulable for the same reasons."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for eviction in evictions:
        replacement = eviction.replacement
        texts = reasons(replacement.message, replacement.diagnosis, limit)
        groups.setdefault(texts, []).append(f"{eviction.namespace}/{eviction.name}")
    return list(groups.items())


def reasons(message: str, diagnosis: "Diagnosis | None", limit: int | None) -> tuple[str, ...]:
    """Return the message of the scheduler, and why devices were not available."""
    return message, *_requests(diagnosis, limit)


def shorten(names: Sequence[str], limit: int | None) -> str:
    """Return the first names, and how many more there are."""
    left = 0 if limit is None else len(names) - limit
    return ", ".join(names[:limit]) + (f" and {left} more" if left > 0 else "")


def _requests(diagnosis: "Diagnosis | None", limit: int | None) -> Iterator[str]:
    """Yield why devices were not available for each request."""
    for request in diagnosis.requests if diagnosis is not None else ():
        parts = [f"{request.available} available"]
        parts += [
            f"{count} {_as_text(reason)}"
            for reason, count in request.refused.items()
            if reason != "taint"
        ]
        parts += _tainted(request.taints, limit)
        if request.more_taints:
            parts.append(number_of(request.more_taints, "more taint"))
        yield f"    request {request.request} needs {request.wanted}: {', '.join(parts)}"


def _tainted(taints: "Sequence[BlockingTaint]", limit: int | None) -> Iterator[str]:
    """Yield how many devices each taint excludes, and its source.

    A taint that many rules set, as those of a glob do, is listed once, with the devices of each
    rule in parentheses: two rules may select the same device, so there is no sum.
    """
    groups: dict[tuple[str, bool], list[BlockingTaint]] = {}
    for taint in taints:
        groups.setdefault((f"{taint.key}:{taint.effect}", taint.expired), []).append(taint)
    for (text, expired), same in groups.items():
        end = ", no longer tolerated" if expired else ""
        if len(same) == 1:
            yield f"{same[0].devices} tainted {text} by {same[0].origin}{end}"
        else:
            origins = [f"{taint.origin} ({taint.devices})" for taint in same]
            yield f"tainted {text} by {shorten(origins, limit)}{end}"


def _as_text(name: str) -> str:
    """Return a name such as `inUse` as text."""
    return "".join(f" {char.lower()}" if char.isupper() else char for char in name)


def unmatched(request: "UnmatchedRequest") -> str:
    classes = ", ".join(request.device_classes)
    return (
        f"{request.kind} {request.namespace}/{request.name}: request {request.request} (class"
        f" {classes}) would match no device"
    )
