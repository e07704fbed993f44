"""The `scale` subresource: reading and changing the replicas of a workload.

What a Scale is, and what it does to a workload, is api/apps/scale.py; api/apps/scaleowners.py
decides who owns the number. Other subresources are in subresources.py.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from sully.api.apiextensions.scale import (
    apply_custom_scale,
    custom_scale_of,
    custom_scale_to_change,
)
from sully.api.apps.scale import CUSTOM_SCALE_COLUMNS, SCALE_COLUMNS, apply_scale, scale_of
from sully.api.apps.scaleowners import REPLICAS, SCALE, owners_of_scale, owners_of_workload
from sully.machinery.errors import (
    ApiError,
    BadRequest,
    MethodNotAllowed,
    client_error,
    invalid,
    method_not_allowed,
)
from sully.machinery.fields import Path
from sully.machinery.formats.timestamps import format_time
from sully.machinery.patch.apply import apply
from sully.machinery.patch.errors import PatchError
from sully.machinery.patch.json_patch import apply_json_patch
from sully.machinery.patch.merge_patch import apply_merge_patch
from sully.machinery.patch.ownership.entries import Entry, entries_of
from sully.machinery.patch.ownership.managed import Write, track_update
from sully.machinery.serialization.codec import copy
from sully.machinery.serialization.gotext import compact_json, quote
from sully.machinery.strategy import Obj, ScalePaths
from sully.server.registry.bodies.body import Body, PatchText
from sully.server.registry.bodies.decoding import decode_part
from sully.server.registry.bodies.kinds import SentKind
from sully.server.registry.options import check_write_options
from sully.server.registry.patches import APPLY, JSON_PATCH, STRATEGIC, unknown_format
from sully.server.registry.replies import ConnectReply, parent_request
from sully.server.registry.updates import Updater, check_name
from sully.server.registry.writes import ObjectWriter, Result
from sully.server.requests import Request
from sully.server.storage.reads import Reader

_KIND = "Scale"
_CUSTOM_SCHEME = "k8s.io/client-go/scale/util.go:146"
_NO_OWNERS = (
    "failed to create manager for existing fields: failed to convert live object (/;"
    " autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid"
    " group/version: autoscaling/v1"
)
"""Kubernetes cannot apply the scale of a custom resource whose count nobody owns."""


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
                return _reply(request, self._view(request, self._writer.objects.live(record)))
            case "PATCH", media if media == STRATEGIC and _paths(request) is not None:
                raise unknown_format()
            case "PUT", _:
                return await self._replace(request, body)
            case "PATCH", media if media == APPLY:
                return await self._apply(request, body.value)
            case "PATCH", _:
                return await self._patch(request, patch_type, body)
            case verb, _ if _paths(request) is not None:
                raise _not_supported(request, {"POST": "create"}.get(verb, verb.lower()))
            case _:
                raise method_not_allowed()

    async def _replace(self, request: Request, body: Body) -> ConnectReply:
        check_write_options(request, "UpdateOptions")
        problem = self._kind_problem(request, body.value)
        if problem:
            sent = SentKind.of_part(body.value, _KIND, SCALE)
            version = quote(sent.version)
            raise BadRequest(
                f"{sent.kind} in version {version} cannot be handled as a {_KIND}: {problem}"
            )
        decoded = decode_part(request, self._schema, body)
        check_name(request.target, decoded.obj)
        result = await self._rescale(request, lambda old: self._updated(request, old, decoded.obj))
        return _reply(request, result.obj, [*decoded.warnings, *result.warnings])

    async def _patch(self, request: Request, patch_type: str, body: Body) -> ConnectReply:
        check_write_options(request, "PatchOptions")
        run = apply_json_patch if patch_type == JSON_PATCH else apply_merge_patch
        warnings: list[str] = []

        def patched(old: Obj) -> Obj:
            try:
                changed = run(_scale_to_change(request, self._view(request, old)), body.value)
            except PatchError as error:
                raise error.answer() from None
            made = partial(compact_json, _sorted_fields(changed))
            problem = self._kind_problem(request, changed)
            if problem:
                raise invalid("", "", "", [Path("patch").invalid(made(), problem)])
            sent = Body(changed, body.repeated)
            decoded = decode_part(request, self._schema, sent, PatchText(made))
            check_name(request.target, decoded.obj)
            warnings[:] = decoded.warnings
            return self._updated(request, old, decoded.obj)

        result = await self._rescale(request, patched)
        return _reply(request, result.obj, [*warnings, *result.warnings])

    async def _apply(self, request: Request, value: Any) -> ConnectReply:
        check_write_options(request, "PatchOptions", apply=True)
        if not isinstance(value, dict):
            raise BadRequest("an apply patch must be an object")
        if (value.get("apiVersion"), value.get("kind")) != (SCALE, _KIND):
            group, _, version = str(value.get("apiVersion") or "").rpartition("/")
            kind = value.get("kind") or ""
            raise BadRequest(f"invalid object type: {group}/{version}, Kind={kind}")
        metadata = value.get("metadata")
        named: Obj = {"metadata": {"name": request.target.name}}
        named["metadata"] |= metadata if isinstance(metadata, dict) else {}
        check_name(request.target, named)

        def applied(old: Obj) -> Obj:
            scale = self._owned_scale(request, old)
            if _paths(request) is not None and not scale["metadata"]["managedFields"]:
                raise ApiError(_NO_OWNERS)
            laid_over, owners = self._laid_over(request, scale, value)
            decoded = decode_part(request, self._schema, Body(laid_over))
            return _scaled(request, old, decoded.obj, owners)

        result = await self._rescale(request, applied)
        return _reply(request, result.obj, result.warnings)

    def _updated(self, request: Request, old: Obj, scale: Obj) -> Obj:
        """Return a copy of an object with the count of a Scale that an update or patch wrote."""
        owners = track_update(self._owned_scale(request, old), scale, self._write(request))
        return _scaled(request, old, scale, owners)

    def _owned_scale(self, request: Request, old: Obj) -> Obj:
        """Return the Scale of an object with its managers."""
        scale = _scale_to_change(request, self._view(request, old))
        scale["metadata"]["managedFields"] = owners_of_scale(entries_of(old), _replicas(request))
        return scale

    def _write(self, request: Request) -> Write:
        now = format_time(self._writer.context(request).now)
        return Write(request.manager, SCALE, self._schema, now, "scale")

    def _kind_problem(self, request: Request, value: Any) -> str:
        """Return why a body is not a Scale; empty if it is one."""
        if not isinstance(value, dict):
            return ""
        sent = SentKind.of_part(value, _KIND, SCALE)
        if (sent.kind, sent.api_version) == (_KIND, SCALE):
            return ""
        if _paths(request) is None:
            return sent.mismatch(self._writer.objects, f"autoscaling.{_KIND}")
        return sent.unregistered(_CUSTOM_SCHEME)

    def _view(self, request: Request, obj: Obj) -> Obj:
        return self._writer.objects.convert(obj, request.target.resource, request.target.version)

    def _laid_over(self, request: Request, scale: Obj, value: Obj) -> tuple[Obj, list[Obj]]:
        """Return a Scale with an applied configuration, and its managedFields."""
        try:
            applied_scale = apply(scale, value, self._write(request), force=request.flag("force"))
        except PatchError as error:
            raise error.answer() from None
        except ApiError as error:
            # Kubernetes takes a bad configuration for its own failure.
            if type(error) is ApiError:
                raise client_error(error.message, self._writer.compat) from None
            raise
        return applied_scale.object, applied_scale.managed_fields

    async def _rescale(self, request: Request, change: Callable[[Obj], Obj]) -> Result:
        # Scaling is an update of the whole object and is validated as one; but managers are
        # tracked on the Scale.
        strategy = request.target.resource.strategy
        return await self._updater.modify(request, change, track=False, strategy=strategy)


def _not_supported(request: Request, verb: str) -> MethodNotAllowed:
    group, plural = request.target.resource.group, request.target.resource.plural
    return MethodNotAllowed(
        f'{verb} is not supported on resources of kind "{plural}.{group}"',
        details={"group": group, "kind": plural},
    )


def _sorted_fields(value: Any) -> Any:
    """Return what a patch made as Kubernetes shows it, with its fields in alphabetical order."""
    return dict(sorted(value.items())) if isinstance(value, dict) else value


def _paths(request: Request) -> ScalePaths | None:
    """Return where a custom resource has its count; None for kinds of Kubernetes."""
    target = request.target
    version = target.resource.version(target.version)
    return None if version is None else version.scale_paths


def _replicas(request: Request) -> tuple[str, ...]:
    """Return the path of the count in the workload."""
    paths = _paths(request)
    return REPLICAS if paths is None else paths.replicas


def _scale(request: Request, obj: Obj) -> Obj:
    paths = _paths(request)
    scale = scale_of(obj) if paths is None else custom_scale_of(obj, paths)
    return {"kind": _KIND, "apiVersion": SCALE, **scale}


def _scale_to_change(request: Request, obj: Obj) -> Obj:
    paths = _paths(request)
    scale = scale_of(obj) if paths is None else custom_scale_to_change(obj, paths)
    return {"kind": _KIND, "apiVersion": SCALE, **scale}


def _scaled(request: Request, old: Obj, scale: Obj, owners: list[Entry]) -> Obj:
    """Return a copy of an object with the count and the managers of a Scale."""
    paths, path = _paths(request), _replicas(request)
    if paths is None:
        changed = apply_scale(copy(old), scale)
    else:
        changed = apply_custom_scale(copy(old), scale, paths)
    entries = owners_of_workload(entries_of(old), owners, request.target.group_version, path)
    changed["metadata"]["managedFields"] = entries
    return changed


def _reply(request: Request, obj: Obj, warnings: list[str] | None = None) -> ConnectReply:
    columns = SCALE_COLUMNS if _paths(request) is None else CUSTOM_SCALE_COLUMNS
    return ConnectReply(_scale(request, obj), warnings=warnings or [], columns=columns)
