"""The options of the verbs, and their parameters in a request.

Both transports pass the same parameters: the query of the HTTP API is also the form in which the
embedded server takes options.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec


class PatchType(Enum):
    """The forms of a patch; the value is the content type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    # JSON is YAML, so one content type serves; the one for JSON is too new for older servers.
    APPLY = "application/apply-patch+yaml"


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which objects to list, and how fresh."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None

    def query(self) -> dict[str, str]:
        """Return the parameters of the request."""
        return _parameters(
            labelSelector=self.label_selector,
            fieldSelector=self.field_selector,
            limit=self.limit or None,
            **{"continue": self.continue_token},
            resourceVersion=self.resource_version,
            resourceVersionMatch=self.resource_version_match,
            timeoutSeconds=self.timeout_seconds,
        )


class WatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which changes to follow, and from where.

    Without a resource version a watch opens with an ADDED event for all that exists.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    bookmarks: bool = True
    timeout_seconds: int | None = None
    opened: Callable[[], None] | None = None
    """Called when the response of a remote server begins; not part of the request."""

    def query(self) -> dict[str, str]:
        """Return the parameters of the request."""
        return _parameters(
            watch=True,
            labelSelector=self.label_selector,
            fieldSelector=self.field_selector,
            resourceVersion=self.resource_version,
            allowWatchBookmarks=self.bookmarks,
            timeoutSeconds=self.timeout_seconds,
        )


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to write; `force` is for apply and takes fields from other managers."""

    dry_run: bool = False
    field_manager: str = ""
    force: bool = False
    field_validation: str = ""

    def query(self) -> dict[str, str]:
        """Return the parameters of the request."""
        return _parameters(
            dryRun="All" if self.dry_run else "",
            fieldManager=self.field_manager,
            force=self.force,
            fieldValidation=self.field_validation,
        )


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to delete; `uid` and `resource_version` are preconditions."""

    dry_run: bool = False
    grace_period_seconds: int | None = None
    propagation_policy: str = ""
    uid: str = ""
    resource_version: str = ""

    def query(self) -> dict[str, str]:
        """Return the parameters of the request; the other options are in the body."""
        return _parameters(dryRun="All" if self.dry_run else "")

    def body(self) -> dict[str, Any] | None:
        """Return the DeleteOptions object, or None without any option."""
        preconditions = _filled(uid=self.uid, resourceVersion=self.resource_version)
        options = _filled(
            gracePeriodSeconds=self.grace_period_seconds,
            propagationPolicy=self.propagation_policy,
            preconditions=preconditions,
            # Also here: a server that gets a body ignores the query.
            dryRun=["All"] if self.dry_run else [],
        )
        return {"kind": "DeleteOptions", "apiVersion": "v1", **options} if options else None


def _parameters(**parameters: str | int | bool | None) -> dict[str, str]:
    return {
        name: "true" if value is True else str(value)
        for name, value in parameters.items()
        if value is not None and value is not False and value != ""
    }


def _filled(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


DEFAULT_LIST = ListOptions()
DEFAULT_WATCH = WatchOptions()
DEFAULT_WRITE = WriteOptions()
DEFAULT_DELETE = DeleteOptions()
