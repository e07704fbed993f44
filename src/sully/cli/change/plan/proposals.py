"""The changes of a plan, with objects as the server would store them."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sully.cli.change.plan.manifests import Manifest, kind_of
from sully.cli.client.session import Session
from sully.cli.command import CommandError
from sully.cli.output.spinner import spinner
from sully.cli.output.text import printable
from sully.cli.selection.globs import ANY
from sully.cli.selection.selectors import Pattern
from sully.client.objects import key_of
from sully.machinery.errors import ApiError
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from sully.client.transport import Key, Kind
    from sully.planning.dryrun.changes import Change
    from sully.views.snapshot.snapshot import Snapshot

Obj = dict[str, Any]
CONCURRENT = 16
"""How many objects are validated at the same time."""


async def proposed(
    session: Session, snapshot: "Snapshot", manifests: Iterable[Manifest], *, delete: bool = False
) -> "list[Change]":
    """Return the changes that apply or delete objects.

    Files are treated as `kubectl apply` does, with unknown fields refused.
    """
    from sully.planning.dryrun.changes import Put, Remove
    from sully.planning.dryrun.dry_run import DryRun

    objects = [(kind_of(manifest), manifest) for manifest in manifests]
    keys = [(kind, _key(session, kind, manifest.body)) for kind, manifest in objects]
    if delete:
        for (kind, key), (_, manifest) in zip(keys, objects, strict=True):
            if snapshot.get(kind, key) is None:
                raise CommandError(f'{manifest.where}{kind.kind.lower()} "{key}" not found')
        return [Remove(kind, key) for kind, key in keys]
    objects = [(kind, _in_hub_version(kind, manifest)) for kind, manifest in objects]
    local = getattr(session.options, "dry_run", "") == "client"
    from_files = any(manifest.file for _, manifest in objects)
    dry_run = DryRun(snapshot, None if local else session.connection, apply=from_files)
    # A glob may expand to many rules, more than a server should validate at the same time.
    limit = asyncio.Semaphore(CONCURRENT)

    async def put(kind: "Kind[Any]", manifest: Manifest) -> Put:
        async with limit:
            return Put(kind, await _stored(dry_run, kind, manifest))

    text = f"Validating {number_of(len(objects), 'object')}"
    with spinner(lambda: text):
        return await asyncio.gather(*(put(kind, manifest) for kind, manifest in objects))


async def _stored(dry_run: Any, kind: "Kind[Any]", manifest: Manifest) -> Any:

    try:
        return await dry_run.stored(kind, manifest.body)
    except ApiError as error:
        text = printable(_refusal(kind, manifest.body["metadata"]["name"], error))
        raise CommandError(f"{manifest.where}{text}") from error


def _refusal(kind: "Kind[Any]", name: str, error: "ApiError") -> str:

    problems = ", ".join(error.strict_errors)
    if not problems and (error.details or {}).get("name") == name:
        return error.message
    return f'{kind.kind} "{name}": {problems or error.message}'


def _key(session: Session, kind: "Kind[Any]", body: Obj) -> "Key":
    """Return the key of an object, after setting its namespace."""

    metadata = body["metadata"]
    if not kind.namespaced:
        # Servers ignore one, too.
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = session.namespace or session.default_namespace
    return key_of(body)


def _in_hub_version(kind: "Kind[Any]", manifest: Manifest) -> Manifest:
    from sully.views.snapshot.file import SnapshotError, in_hub_version

    try:
        return replace(manifest, body=in_hub_version(manifest.body, kind))
    except SnapshotError as error:
        text = f"no kind {kind.kind} in version {manifest.body.get('apiVersion')!r}"
        raise CommandError(f"{manifest.where}{text}", code=2) from error


# -- rules and patches that match no device -------------------------------------------------------


def warn_of_unmatched(session: Session, snapshot: "Snapshot", changes: "Iterable[Change]") -> None:
    """Warn about rules and patches that match no device: a name may be wrong."""
    from sully.planning.dryrun.changes import Put

    for change in changes:
        if isinstance(change, Put):
            for problem in _problems(snapshot, change.kind.kind, change.obj):
                session.warn(f"warning: {change.kind.kind} {change.key}: {problem}")


def _problems(snapshot: "Snapshot", kind: str, obj: Any) -> Iterator[str]:
    from sully.cli.selection.suggestions import check_class, device_not_found

    if kind == "DeviceTaintRule":
        criteria = obj.spec.device_selector
        if criteria is None:
            yield "no deviceSelector, which matches no device; {} matches every device"
            return
    elif kind == "ResourceSlicePatch":
        criteria = obj.spec.devices.filter
    else:
        return
    if criteria is None:
        return
    pattern = Pattern(criteria.driver or ANY, criteria.pool or ANY, criteria.device or ANY)
    if not snapshot.inventory.count_named(criteria):
        yield f"currently matches no device: {device_not_found(snapshot, pattern) or pattern}"
    try:
        check_class(snapshot, criteria.device_class_name or "")
    except CommandError as error:
        yield str(error).partition("\n")[0]
