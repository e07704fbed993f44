"""The objects that taints come from: who created them, why, and until when they apply.

A rule that was deleted is still known by its record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sully.api.resource.annotations import (
    DESCRIPTION,
    creator_of,
    expiry,
    maintenance_end,
    pause_reason,
)
from sully.api.resource.types import DeviceTaintRule, ResourceSlice, ResourceSlicePatch
from sully.api.sully.types import TaintRecord
from sully.domain.devices.taints import SourcedTaint
from sully.domain.eviction.records import description
from sully.domain.tolerations import Taint, taint_text
from sully.explain.causes import Source, TaintFact
from sully.explain.text import data_text
from sully.machinery.meta import ObjectMeta, TrackedMeta


class Sources:
    """The objects that taints come from, by origin."""

    def __init__(
        self,
        rules: Iterable[DeviceTaintRule] = (),
        patches: Iterable[ResourceSlicePatch] = (),
        slices: Iterable[ResourceSlice] = (),
        records: Iterable[TaintRecord] = (),
    ) -> None:
        sources = [_of_record(record) for record in records]
        # What exists counts more than what is recorded; of several of a name, the last one.
        sources.sort(key=lambda source: (source.deleted is None, str(source.since)))
        sources += map(_of_slice, slices)
        sources += map(of_patch, patches)
        sources += map(of_rule, rules)
        self._by_origin = {source.origin: source for source in sources}

    def of(self, origin: str) -> Source:
        """Return what is known of an object; its name at least."""
        return self._by_origin.get(origin) or Source(origin=origin)

    def of_all(self, origins: Iterable[str]) -> tuple[Source, ...]:
        """Return what is known of objects, each once."""
        return tuple(map(self.of, dict.fromkeys(origins)))

    def taint(self, taint: Taint, origin: str) -> TaintFact:
        source, data = self.of(origin), getattr(taint, "data", None)
        return TaintFact(
            taint=taint_text(taint),
            source=source,
            added=getattr(taint, "time_added", None) or source.since,
            why=getattr(taint, "description", "") or source.why,
            data=data_text(data) if data is not None else "",
        )

    def sourced(self, taint: SourcedTaint) -> TaintFact:
        """Return a taint that knows where it comes from, with its source."""
        return self.taint(taint.taint, str(taint.origin))


def origins_of(taints: Iterable[SourcedTaint]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(taint.origin) for taint in taints))


def author(metadata: ObjectMeta) -> str:
    """Return the user who created an object, where the server records it."""
    return creator_of(metadata.annotations)


def program(metadata: TrackedMeta, *fields: str) -> str:
    """Return the program that first wrote a part of an object, which all servers record.

    A field manager is a program, like kubectl-create, not a user.
    """
    entries = [entry for entry in metadata.managed_fields if isinstance(entry, Mapping)]
    for entry in sorted(entries, key=lambda entry: str(entry.get("time") or "")):
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
    annotations = rule.metadata.annotations
    return Source(
        origin=f"DeviceTaintRule/{rule.metadata.name}",
        by=author(rule.metadata),
        program=program(rule.metadata, "f:spec"),
        why=description(rule),
        since=rule.metadata.creation_timestamp,
        until=expiry(annotations) or maintenance_end(annotations),
        paused=pause_reason(annotations),
    )


def of_patch(patch: ResourceSlicePatch) -> Source:
    annotations = patch.metadata.annotations
    return Source(
        origin=f"ResourceSlicePatch/{patch.metadata.name}",
        by=author(patch.metadata),
        program=program(patch.metadata, "f:spec"),
        why=annotations.get(DESCRIPTION, ""),
        since=patch.metadata.creation_timestamp,
        until=expiry(annotations),
    )


def _of_slice(slice_: ResourceSlice) -> Source:
    return Source(origin=f"ResourceSlice/{slice_.metadata.name}", driver=slice_.spec.driver)


def _of_record(record: TaintRecord) -> Source:
    return Source(
        origin=f"DeviceTaintRule/{record.spec.rule.name}",
        by=record.spec.created_by,
        why=record.status.description or record.spec.description,
        since=record.spec.added_time,
        deleted=record.status.deleted_time,
    )
