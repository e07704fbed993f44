"""Reading: one object, or a list at one consistent state, in pages."""

import re
from collections.abc import Sequence

import msgspec

from sully.machinery.compat import Compat
from sully.machinery.errors import (
    ApiError,
    BadRequest,
    Expired,
    Timeout,
    client_error,
    invalid,
    not_found,
)
from sully.machinery.fields import FieldError, Path
from sully.machinery.serialization.gotext import quote
from sully.server.requests import Request, Target
from sully.server.storage.continue_tokens import read_token, write_token
from sully.server.storage.objects import Objects
from sully.server.storage.selection import SelectionPredicate, parse_selectors, selection
from sully.server.storage.turns import in_turns
from sully.store.base import Record, Store
from sully.store.errors import CompactedError, FutureRevisionError

NO_MATCH_WITH_CONTINUE = "resourceVersionMatch is forbidden when continue is provided"
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)


class Listing(msgspec.Struct):
    """One page of a list."""

    records: list[Record]
    revision: int
    continue_token: str = ""
    remaining: int | None = None


class Reader:
    """Serves get and list from the store."""

    def __init__(self, store: Store, objects: Objects, compat: Compat = Compat.SULLY) -> None:
        self._store = store
        self._objects = objects
        self._compat = compat

    async def get(self, request: Request) -> Record:
        """Return one object."""
        target = request.target
        if request.options.get("export") is not None:
            raise BadRequest("the export parameter, deprecated since v1.14, is no longer supported")
        version = parse_version(request.option("resourceVersion"), compat=self._compat)
        await catch_up_to(self._store, version)
        if version > self._store.revision:
            raise too_large_version(version, self._store.revision)
        record = await self._store.get(self._objects.key(target))
        if record is None:
            raise not_found(*target.names)
        return record

    async def listing(self, request: Request) -> Listing:
        """Return a page of the objects that the request selects."""
        parse_int(request.options.get("timeoutSeconds", "0"))
        limit = _limit(request)
        check_list_options(request)
        predicate = selection(request)
        start, at = await self._position(request)
        try:
            return await self._page(request.target, predicate, start, at, limit)
        except CompactedError:
            raise self._expired(request.target.namespace, start) from None
        except FutureRevisionError:
            raise too_large_version(at or 0, self._store.revision) from None

    async def _position(self, request: Request) -> tuple[tuple[str, str] | None, int | None]:
        token = request.option("continue")
        version = request.option("resourceVersion")
        if token:
            position = read_token(request.target.namespace, token)
            if version not in ("", "0"):
                raise BadRequest("specifying resource version is not allowed when using continue")
            return position
        number = parse_version(version, wrapped=True)
        await catch_up_to(self._store, number)
        if number > self._store.revision:
            raise too_large_version(number, self._store.revision)
        exact = request.option("resourceVersionMatch") == "Exact"
        # A limit with a version and no match rule reads at that version, as Kubernetes does.
        legacy = bool(request.option("limit")) and not request.option("resourceVersionMatch")
        return None, number if number and (exact or legacy) else None

    def _expired(self, namespace: str, start: tuple[str, str] | None) -> ApiError:
        if start is None:
            return Expired("The resourceVersion for the provided list is too old.")
        token = write_token(namespace, start, -1)
        error = Expired(
            "The provided continue parameter is too old to display a consistent list result. You"
            " can start a new list without the continue parameter, or use the continue token in"
            " this response to retrieve the remainder of the results. Continuing with the provided"
            " token results in an inconsistent list - objects that were created, modified, or"
            " deleted between the time the first chunk was returned and now may show up in the"
            " list."
        )
        error.list_metadata = {"continue": token}
        return error

    async def _page(
        self,
        target: Target,
        predicate: SelectionPredicate,
        start: tuple[str, str] | None,
        at: int | None,
        limit: int | None,
    ) -> Listing:
        scope = (target.resource.storage_key, target.namespace or None)
        name = predicate.fields.exact("metadata.name")
        if predicate.everything:
            page = await self._store.list(*scope, at=at, start=start, limit=limit)
            token = self._next_token(target, page.records, page.revision, page.remaining)
            remaining = page.remaining if page.remaining else None
            return Listing(page.records, page.revision, token, remaining)
        page = await self._store.list(*scope, at=at, start=start)
        named = [record for record in page.records if name in (None, record.key.name)]
        records = await select(named, predicate, self._objects)
        if limit is None or len(records) <= limit:
            return Listing(records, page.revision)
        page_records = records[:limit]
        # With a selector Kubernetes does not set remainingItemCount.
        return Listing(
            page_records, page.revision, self._next_token(target, page_records, page.revision, 1)
        )

    def _next_token(
        self, target: Target, records: list[Record], revision: int, remaining: int
    ) -> str:
        if not remaining or not records:
            return ""
        last = records[-1].key
        return write_token(target.namespace, (last.namespace, last.name), revision)


async def select(
    records: Sequence[Record], predicate: SelectionPredicate, objects: Objects
) -> list[Record]:
    """Return the records whose objects match."""
    live = objects.live
    return [
        record
        async for part in in_turns(records)
        for record in part
        if predicate.matches(live(record))
    ]


def check_list_options(request: Request) -> None:
    """Reject combinations of version options that mean nothing for a list."""
    match = request.option("resourceVersionMatch")
    version = request.option("resourceVersion")
    problems: list[FieldError] = []
    at = Path("resourceVersionMatch")
    if match:
        if not version:
            problems.append(
                at.forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided")
            )
        if request.option("continue"):
            problems.append(at.forbidden(NO_MATCH_WITH_CONTINUE))
        if match not in ("Exact", "NotOlderThan"):
            problems.append(at.not_supported(match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and version == "0":
            problems.append(
                at.forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
            )
    if request.options.get("sendInitialEvents") is not None:
        problems.append(
            Path("sendInitialEvents").forbidden("sendInitialEvents is forbidden for list")
        )
    if problems:
        # Kubernetes reads the whole query before it checks the options.
        parse_selectors(request)
        raise invalid("ListOptions", "meta.k8s.io", "", problems)


def parse_version(text: str, *, wrapped: bool = False, compat: Compat = Compat.SULLY) -> int:
    """Read a resourceVersion option; empty and 0 mean none in particular."""
    if not text:
        return 0
    digits = text.isdigit() and text.isascii()
    # Twenty digits are more than the largest version has; Python rejects thousands of them.
    if digits and len(text) <= 20 and int(text) < 2**64:
        return int(text)
    reason = "value out of range" if digits else "invalid syntax"
    problem = Path("resourceVersion").invalid(
        text, f"strconv.ParseUint: parsing {quote(text)}: {reason}"
    )
    if wrapped:
        raise BadRequest(f"invalid resource version: {problem}")
    raise client_error(str(problem), compat)


async def catch_up_to(store: Store, version: int) -> None:
    """Wait for a version that another replica may have returned to a client."""
    if version > store.revision:
        await store.catch_up()


def too_large_version(requested: int, current: int) -> Timeout:
    """Return the error for a resourceVersion in the future."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return Timeout(
        f"Timeout: Too large resource version: {requested}, current: {current}",
        details={"causes": [cause], "retryAfterSeconds": 1},
        headers={"Retry-After": "1"},
    )


def _limit(request: Request) -> int | None:
    """Return the limit of a page; none applies to a list of any version, as in Kubernetes."""
    text = request.options.get("limit")
    if text is None:
        return None
    value = parse_int(text)
    return value if value > 0 and request.option("resourceVersion") != "0" else None


def parse_int(text: str) -> int:
    """Parse an integer option."""
    if not _INTEGER.fullmatch(text):
        raise BadRequest(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    value = int(text) if len(text) < 100 else 2**63
    if not -(2**63) <= value < 2**63:
        raise BadRequest(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return value
