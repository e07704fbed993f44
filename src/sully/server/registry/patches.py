"""PATCH: JSON patch, merge patch, strategic merge patch, and server-side apply."""

from functools import partial
from typing import Any

from sully.machinery.errors import (
    ApiError,
    BadRequest,
    UnsupportedMediaType,
    client_error,
    conflict,
    not_found,
)
from sully.machinery.patch.apply import apply, check_unmanaged, described
from sully.machinery.patch.errors import PatchError
from sully.machinery.patch.gotext import plain
from sully.machinery.patch.json_patch import apply_json_patch, unknown_fields
from sully.machinery.patch.merge_patch import apply_merge_patch, check_merge_patch, go_kind
from sully.machinery.patch.quoting import json_patched, merge_patched
from sully.machinery.patch.strategic import apply_strategic_merge_patch, merged_patch
from sully.machinery.serialization.codec import in_key_order
from sully.machinery.serialization.gotext import compact_json
from sully.machinery.strategy import Obj
from sully.server.registry.bodies.body import Body, PatchText, check_values
from sully.server.registry.bodies.decoding import decode_object, patched_request, with_empty_lists
from sully.server.registry.creates import Creator
from sully.server.registry.updates import Updater, check_name
from sully.server.registry.writes import ObjectWriter, Result
from sully.server.requests import Request
from sully.server.storage.objects import typed

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_ANY_MAP = "map[string]interface {}"


def unknown_format() -> UnsupportedMediaType:
    """Answer for a patch of a custom resource of another type than it has rules for."""
    return UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include:"
        f" {JSON_PATCH}, {MERGE}, {APPLY}"
    )


class Patcher:
    """Runs patches of all kinds."""

    def __init__(self, writer: ObjectWriter, creator: Creator, updater: Updater) -> None:
        self._writer = writer
        self._creator = creator
        self._updater = updater
        self._objects = writer.objects

    async def patch(self, request: Request, patch_type: str, body: Body) -> Result:
        """Apply a patch."""
        if patch_type == APPLY:
            return await self._apply(request, body)
        if patch_type == STRATEGIC:
            self._check_strategic(request)
        warnings: list[str] = []
        request = with_empty_lists(request, body)

        def change(old: Obj) -> Obj:
            warnings.clear()
            if patch_type == MERGE:
                self._check_shape(body.value)
            return self._apply_patch(request, patch_type, body, old, warnings)

        try:
            result = await self._updater.modify(request, change)
        except ApiError as error:
            error.warnings[:0] = warnings
            raise
        result.warnings[:0] = list(dict.fromkeys(warnings))
        return result

    def _check_strategic(self, request: Request) -> None:
        """Reject what custom resources have no rules for."""
        target = request.target
        version = target.resource.version(target.version)
        if version is not None and version.structural:
            raise unknown_format()

    def _check_shape(self, value: Any) -> None:
        try:
            check_merge_patch(value)
        except PatchError as error:
            raise error.answer() from None

    def _apply_patch(
        self, request: Request, patch_type: str, body: Body, old: Obj, warnings: list[str]
    ) -> Obj:
        target = request.target
        view = self._objects.convert(old, target.resource, target.version)
        try:
            changed = self._run(request, patch_type, typed(view, target), body.value)
        except PatchError as error:
            raise self._as_our_error(error.answer()) from None
        if patch_type == JSON_PATCH:
            # The size of the patch does not limit the size of the result.
            check_values(target.resource, changed)
        text = PatchText(
            partial(self._shown, request, patch_type, (view, changed), body.value),
            is_strategic=patch_type == STRATEGIC,
            is_json_patch=patch_type == JSON_PATCH,
            unknown=unknown_fields(body.value) if patch_type == JSON_PATCH else (),
        )
        if patch_type != STRATEGIC:
            # A strategic patch changes no kind: what it makes is not decoded by one.
            request = patched_request(self._objects, request, changed, text, warnings)
        return self._read(request, changed, body, warnings, text, old)

    def _shown(self, request: Request, patch_type: str, states: tuple[Obj, Obj], patch: Any) -> str:
        """Return what an error quotes: the patched object, or of a strategic patch the patch."""
        before, changed = states
        if patch_type == STRATEGIC:
            return plain(merged_patch(before, patch))
        target = request.target
        if target.resource.storage_version.custom is not None:
            return compact_json(in_key_order(changed))
        schema = self._objects.scheme.schema(target.resource, target.version)
        show = json_patched if patch_type == JSON_PATCH else merge_patched
        return show(changed, schema, patch)

    def _run(self, request: Request, patch_type: str, document: Obj, patch: Any) -> Any:
        if patch_type == JSON_PATCH:
            return apply_json_patch(document, patch)
        if patch_type == MERGE:
            return apply_merge_patch(document, patch)
        schema = self._objects.scheme.schema(request.target.resource, request.target.version)
        return apply_strategic_merge_patch(document, patch, schema)

    def _read(
        self,
        request: Request,
        changed: Obj,
        body: Body,
        warnings: list[str],
        patch: PatchText | None = None,
        before: Obj | None = None,
    ) -> Obj:
        """Decode a patched object like the body of an update."""
        target = request.target
        decoded = decode_object(self._objects, request, changed, body.repeated, patch, before)
        warnings += decoded.warnings
        try:
            check_name(target, decoded.obj)
        except ApiError as error:
            error.warnings[:0] = warnings
            raise
        strategy = self._writer.strategy(target)
        strategy.default(decoded.obj, self._writer.context(request))
        return decoded.obj

    # -- server-side apply ------------------------------------------------------------------------

    async def _apply(self, request: Request, body: Body) -> Result:
        value = body.value
        if not isinstance(value, dict):
            text = f"json: cannot unmarshal {go_kind(value)} into Go value of type {_ANY_MAP}"
            raise BadRequest(
                f"error decoding patch: error unmarshaling JSON: while decoding JSON: {text}"
            )
        self._check_applied(request, value)
        target = request.target
        key = self._objects.key(target)
        warnings: list[str] = []
        if self._writer.store.newest(key) is None:
            if target.subresource:
                raise not_found(*target.names)
            return await self._create_applied(request, value, body, warnings)

        def change(old: Obj) -> Obj:
            warnings.clear()
            live = self._objects.convert(old, target.resource, target.version)
            merged, entries = self._merge(request, live, value)
            obj = self._read_applied(request, merged, body, warnings, old)
            if entries:
                obj["metadata"]["managedFields"] = entries
            else:
                obj["metadata"].pop("managedFields", None)
            return obj

        try:
            result = await self._updater.modify(request, change, track=False)
        except ApiError as error:
            error.warnings[:0] = warnings
            raise
        result.warnings[:0] = list(dict.fromkeys(warnings))
        return result

    async def _create_applied(
        self, request: Request, value: Obj, body: Body, warnings: list[str]
    ) -> Result:
        metadata = value.get("metadata")
        if isinstance(metadata, dict) and metadata.get("uid"):
            text = f"the provided object specified uid {metadata['uid']}"
            text = f"uid mismatch: {text}, and no existing object was found"
            raise conflict(*request.target.names, text)
        merged, entries = self._merge(request, None, value)
        obj = self._read_applied(request, merged, body, warnings)
        obj["metadata"].pop("resourceVersion", None)
        result = await self._creator.create_object(request, obj, managed_fields=entries)
        result.warnings[:0] = list(dict.fromkeys(warnings))
        return result

    def _read_applied(
        self,
        request: Request,
        merged: Obj,
        body: Body,
        warnings: list[str],
        before: Obj | None = None,
    ) -> Obj:
        """Decode an object that an apply merged."""
        name = described(body.value, request.target.group_version)
        text = PatchText(lambda: "", applied=name)
        try:
            return self._read(request, merged, body, warnings, text, before)
        except ApiError as error:
            raise self._as_our_error(error) from None

    def _check_applied(self, request: Request, value: Obj) -> None:
        target = request.target
        group, _, version = str(value.get("apiVersion") or "").rpartition("/")
        sent = value.get("kind")
        kind = sent if isinstance(sent, str) else ""
        if value.get("apiVersion") != target.group_version or kind != target.resource.kind:
            raise BadRequest(f"invalid object type: {group}/{version}, Kind={kind}")
        check_unmanaged(value)

    def _merge(self, request: Request, live: Obj | None, value: Obj) -> tuple[Obj, list[Obj]]:
        target = request.target
        strategy = self._writer.strategy(target)
        write = self._writer.managed_write(request, strategy, self._writer.context(request))
        current = None if live is None else typed(live, target)
        try:
            done = apply(current, value, write, force=request.flag("force"))
        except PatchError as error:
            raise self._as_our_error(error.answer()) from None
        except ApiError as error:
            raise self._as_our_error(error) from None
        return done.object, done.managed_fields

    def _as_our_error(self, error: ApiError) -> ApiError:
        """Return a bad request as 400; Kubernetes returns 500."""
        if type(error) is ApiError:
            return client_error(error.message, self._writer.compat)
        return error
