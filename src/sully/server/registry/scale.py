"""The `scale` subresource: reading and changing the replicas of a workload.

What a Scale is, and what it does to a workload, is api/apps/scale.py; api/apps/scaleowners.py says
who owns the number. Other subresources are in subresources.py.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from sully.api.apps.scale import SCALE_COLUMNS, apply_scale, scale_of
from sully.api.apps.scaleowners import SCALE, owners_of_scale, owners_of_workload
from sully.machinery.codec import copy
from sully.machinery.errors import ApiError, BadRequest, client_error, method_not_allowed
from sully.machinery.gotext import compact_json
from sully.machinery.patch.apply import apply
from sully.machinery.patch.entries import entries_of
from sully.machinery.patch.errors import PatchError
from sully.machinery.patch.json_patch import apply_json_patch
from sully.machinery.patch.managed import Write
from sully.machinery.patch.merge_patch import apply_merge_patch
from sully.machinery.strategy import Obj
from sully.machinery.timestamps import format_time
from sully.server.registry.bodies import Body, decode_part
from sully.server.registry.options import check_write_options
from sully.server.registry.patches import APPLY, JSON_PATCH
from sully.server.registry.replies import ConnectReply, parent_request
from sully.server.registry.updates import Updater, check_name
from sully.server.registry.writes import ObjectWriter, Result
from sully.server.requests import Request
from sully.server.storage.reads import Reader

_KIND = "Scale"


class Scaling:
    """Handles the scale of workloads."""

    def __init__(self, writer: ObjectWriter, updater: Updater, reader: Reader) -> None:
        self._writer = writer
        self._updater = updater
        self._reader = reader
        self._schema = writer.objects.scheme.tables.get("io.k8s.api.autoscaling.v1", _KIND)

    async def call(
        self, request: Request, method: str, patch_type: str, body: Body
    ) -> ConnectReply:
        """Run one request on a scale."""
        match method, patch_type:
            case "GET", _:
                record = await self._reader.get(parent_request(request))
                return _reply(self._writer.objects.live(record))
            case "PUT", _:
                return await self._replace(request, body)
            case "PATCH", media if media == APPLY:
                return await self._apply(request, body.value)
            case "PATCH", _:
                return await self._patch(request, patch_type, body)
            case _:
                raise method_not_allowed()

    async def _replace(self, request: Request, body: Body) -> ConnectReply:
        check_write_options(request, "UpdateOptions")
        _check_kind(body.value)
        decoded = decode_part(request, self._schema, body)
        check_name(request.target, decoded.obj, required=True)
        result = await self._rescale(request, lambda old: apply_scale(copy(old), decoded.obj))
        return _reply(result.obj, [*decoded.warnings, *result.warnings])

    async def _patch(self, request: Request, patch_type: str, body: Body) -> ConnectReply:
        check_write_options(request, "PatchOptions")
        run = apply_json_patch if patch_type == JSON_PATCH else apply_merge_patch
        warnings: list[str] = []

        def patched(old: Obj) -> Obj:
            try:
                changed = run(_scale(old), body.value)
            except PatchError as error:
                raise error.answer() from None
            _check_kind(changed)
            sent = Body(changed, body.repeated)
            decoded = decode_part(request, self._schema, sent, partial(compact_json, changed))
            check_name(request.target, decoded.obj, required=False)
            warnings[:] = decoded.warnings
            return apply_scale(copy(old), decoded.obj)

        result = await self._rescale(request, patched)
        return _reply(result.obj, [*warnings, *result.warnings])

    async def _apply(self, request: Request, value: Any) -> ConnectReply:
        check_write_options(request, "PatchOptions", apply=True)
        if not isinstance(value, dict):
            raise BadRequest("an apply patch must be an object")
        if (value.get("apiVersion"), value.get("kind")) != (SCALE, _KIND):
            group, _, version = str(value.get("apiVersion") or "").rpartition("/")
            kind = value.get("kind") or ""
            raise BadRequest(f"invalid object type: {group}/{version}, Kind={kind}")
        metadata = value.get("metadata")
        named: Obj = {"metadata": dict(metadata) if isinstance(metadata, dict) else {}}
        check_name(request.target, named, required=False)

        def applied(old: Obj) -> Obj:
            before = entries_of(old)
            scale = _scale(old)
            scale["metadata"]["managedFields"] = owners_of_scale(before)
            applied_scale = self._laid_over(request, scale, value)
            changed = apply_scale(
                copy(old), decode_part(request, self._schema, Body(applied_scale[0])).obj
            )
            version = request.target.group_version
            changed["metadata"]["managedFields"] = owners_of_workload(
                before, applied_scale[1], version
            )
            return changed

        result = await self._rescale(request, applied, track=False)
        return _reply(result.obj, result.warnings)

    def _laid_over(self, request: Request, scale: Obj, value: Obj) -> tuple[Obj, list[Obj]]:
        """Return a Scale with an applied configuration, and its managedFields."""
        now = self._writer.context(request).now
        write = Write(request.manager, SCALE, self._schema, format_time(now), "scale")
        try:
            applied_scale = apply(scale, value, write, force=request.flag("force"))
        except PatchError as error:
            raise error.answer() from None
        except ApiError as error:
            # Kubernetes takes a bad configuration for its own failure.
            if type(error) is ApiError:
                raise client_error(error.message, self._writer.compat) from None
            raise
        return applied_scale.object, applied_scale.managed_fields

    async def _rescale(
        self, request: Request, change: Callable[[Obj], Obj], *, track: bool = True
    ) -> Result:
        # Scaling is an update of the whole object and is validated as one.
        strategy = request.target.resource.strategy
        return await self._updater.modify(request, change, track=track, strategy=strategy)


def _scale(obj: Obj) -> Obj:
    return {"kind": _KIND, "apiVersion": SCALE, **scale_of(obj)}


def _reply(obj: Obj, warnings: list[str] | None = None) -> ConnectReply:
    return ConnectReply(_scale(obj), warnings=warnings or [], columns=SCALE_COLUMNS)


def _check_kind(value: Any) -> None:
    """Reject a body of another kind."""
    if not isinstance(value, dict):
        return
    api_version = value.get("apiVersion") or SCALE
    if api_version != SCALE:
        raise BadRequest(
            f"the API version in the data ({api_version}) does not match the expected API version"
            f" ({SCALE})"
        )
    if (value.get("kind") or _KIND) != _KIND:
        raise BadRequest(f'no kind "{value["kind"]}" is registered for version "{SCALE}"')
