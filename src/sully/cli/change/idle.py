"""Says of a rule or patch in a file that it is for no device now: a name in it may be wrong."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sully.cli.client.calling import CommandError, Session
from sully.cli.client.patterns import ANY, Pattern

if TYPE_CHECKING:
    from sully.planning.changes import Change
    from sully.views.snapshot.snapshot import Snapshot


def warn_of_idle(session: Session, snapshot: "Snapshot", changes: "Iterable[Change]") -> None:
    """Warn of what would be there and do nothing; somebody may have meant that, too."""
    from sully.planning.changes import Put

    for each in changes:
        if isinstance(each, Put):
            for problem in _problems(snapshot, each.kind.kind, each.obj):
                session.warn(f"warning: {each.kind.kind} {each.key}: {problem}")


def _problems(snapshot: "Snapshot", kind: str, obj: Any) -> Iterator[str]:
    from sully.cli.client.guessing import check_class, nearest

    if kind == "DeviceTaintRule":
        criteria = obj.spec.device_selector
        if criteria is None:
            yield "it has no deviceSelector, which means no device; {} means every device"
            return
    elif kind == "ResourceSlicePatch":
        criteria = obj.spec.devices.filter
    else:
        return
    if criteria is None:
        return
    pattern = Pattern(criteria.driver or ANY, criteria.pool or ANY, criteria.device or ANY)
    if not snapshot.inventory.count_named(criteria):
        yield f"there is no device {pattern} now{nearest(snapshot, pattern)}"
    try:
        check_class(snapshot, criteria.device_class_name or "")
    except CommandError as error:
        yield str(error).partition("\n")[0]
