"""Who put a taint there, why, and until when: the objects behind an origin.

An origin is `Kind/name`, as accounts and records write it. A rule that is gone is still known by
its record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from sully.api.resource.annotations import CREATED_BY, DESCRIPTION, expiry, pause_reason
from sully.api.resource.types import DeviceTaintRule, ResourceSlice, ResourceSlicePatch
from sully.api.sully.types import TaintRecord
from sully.domain.devices.taints import SourcedTaint
from sully.domain.eviction.records import description
from sully.domain.explaining.wording import AnyTaint, mark, moment, noun, quoted
from sully.machinery.meta import ObjectMeta

MOST_DATA = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An object that says something about devices, and what is known of its author."""

    origin: str
    by: str = ""
    why: str = ""
    since: datetime | None = None
    until: datetime | None = None
    paused: str | None = None
    lifted: datetime | None = None

    def told(self) -> str:
        """Name it in a sentence, with its author."""
        name = noun(self.origin)
        return f"{name} (by {self.by})" if self.by else name


class Sources:
    """The objects that taints come from, by origin."""

    def __init__(
        self,
        rules: Iterable[DeviceTaintRule] = (),
        patches: Iterable[ResourceSlicePatch] = (),
        slices: Iterable[ResourceSlice] = (),
        records: Iterable[TaintRecord] = (),
    ) -> None:
        found = [_of_record(each) for each in records]
        # What exists counts more than what is remembered; of twins, the last one.
        found.sort(key=lambda each: (each.lifted is None, str(each.since)))
        found += map(_of_slice, slices)
        found += map(of_patch, patches)
        found += map(of_rule, rules)
        self._known = {each.origin: each for each in found}

    def of(self, origin: str) -> Source:
        """Return what is known of an object; its name at least."""
        return self._known.get(origin) or Source(origin=origin)

    def told(self, taint: AnyTaint, origin: str, now: datetime) -> str:
        """Write a taint with who set it, when, why and until when."""
        source = self.of(origin)
        text = f"taint {mark(taint)} from {source.told()}"
        added = getattr(taint, "time_added", None) or source.since
        if added is not None:
            text += f", set {moment(added, now)}"
        why = getattr(taint, "description", "") or source.why
        if why:
            text += f", reason {quoted(why)}"
        if (data := getattr(taint, "data", None)) is not None:
            text += f", data {_shortened(data)}"
        if source.until is not None:
            text += f", until {moment(source.until, now)}"
        if source.lifted is not None:
            text += f", lifted {moment(source.lifted, now)}"
        return text

    def told_of(self, found: SourcedTaint, now: datetime) -> str:
        """Write a taint that knows where it comes from."""
        return self.told(found.taint, str(found.origin), now)


def _shortened(data: Any) -> str:
    """Write data on one line; it may have kilobytes, of which the beginning tells most."""
    text = msgspec.json.encode(data).decode()
    return text if len(text) <= MOST_DATA else f"{text[:MOST_DATA]}…"


def author(metadata: ObjectMeta) -> str:
    """Say who made an object: the user our server noted, or who manages its fields."""
    known = metadata.annotations.get(CREATED_BY, "")
    return known or manager(metadata, "f:spec")


def manager(metadata: ObjectMeta, *fields: str) -> str:
    """Return the first field manager of a part of an object, which other servers keep too."""
    entries = [each for each in metadata.managed_fields if isinstance(each, Mapping)]
    for entry in sorted(entries, key=lambda each: str(each.get("time") or "")):
        if not entry.get("subresource") and _has(entry.get("fieldsV1"), fields):
            return str(entry.get("manager") or "")
    return ""


def _has(tree: Any, fields: Iterable[str]) -> bool:
    for field in fields:
        if not isinstance(tree, Mapping) or field not in tree:
            return False
        tree = tree[field]
    return tree is not None


def of_rule(rule: DeviceTaintRule) -> Source:
    """Say what is known of a rule."""
    annotations = rule.metadata.annotations
    return Source(
        origin=f"DeviceTaintRule/{rule.metadata.name}",
        by=author(rule.metadata),
        why=description(rule),
        since=rule.metadata.creation_timestamp,
        until=expiry(annotations),
        paused=pause_reason(annotations),
    )


def of_patch(patch: ResourceSlicePatch) -> Source:
    """Say what is known of a patch."""
    annotations = patch.metadata.annotations
    return Source(
        origin=f"ResourceSlicePatch/{patch.metadata.name}",
        by=author(patch.metadata),
        why=annotations.get(DESCRIPTION, ""),
        since=patch.metadata.creation_timestamp,
        until=expiry(annotations),
    )


def _of_slice(slice_: ResourceSlice) -> Source:
    return Source(origin=f"ResourceSlice/{slice_.metadata.name}", by=f"driver {slice_.spec.driver}")


def _of_record(record: TaintRecord) -> Source:
    return Source(
        origin=f"DeviceTaintRule/{record.spec.rule.name}",
        by=record.spec.created_by,
        why=record.status.description or record.spec.description,
        since=record.spec.added_time,
        lifted=record.status.lifted_time,
    )
