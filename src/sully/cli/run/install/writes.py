"""Writes what is installed, and waits until the server serves it and the controllers run."""

from collections.abc import Iterable
from typing import Any

from sully.cli.client.session import Session
from sully.cli.command import CommandError
from sully.cli.output.formatting import object_name
from sully.cli.run.install.rollout import wait_ready
from sully.client.discovery.resources import APIResource
from sully.client.objects import key_of
from sully.client.options import WriteOptions
from sully.client.transport import Key, Kind
from sully.controllers.framework.customkinds import Definition
from sully.domain.capabilities.offers import Offer
from sully.install.manifests import OPTIONAL, manifests
from sully.install.workload import LABELS, NAME, Settings
from sully.machinery.meta import find_condition, is_condition_true

Obj = dict[str, Any]
MANAGER = "sully-install"
DEFINITIONS = "customresourcedefinitions"
ESTABLISHED_SECONDS = 30.0
"""How long to wait until a server serves a new kind."""


async def apply(
    session: Session, settings: Settings, offered: Offer, served: Iterable[APIResource]
) -> None:
    options = WriteOptions(field_manager=MANAGER, force=True)
    resources = _resources(
        [obj for objects in manifests(settings).values() for obj in objects], offered, tuple(served)
    )
    for obj, kind in resources:
        if kind is None:
            print(f"{object_name(obj)} skipped (the server does not serve this kind)")
            continue
        await session.transport.apply(kind, obj, options)
        print(f"{object_name(obj)} serverside-applied")
    for obj, kind in resources:
        if kind is not None and kind.plural == DEFINITIONS:
            await _established(session, kind.read_as(Definition), key_of(obj).name)


async def _established(session: Session, kind: Kind[Definition], name: str) -> None:
    """Wait until the server serves a kind, which takes a moment."""
    end = session.clock.monotonic() + ESTABLISHED_SECONDS
    while True:
        definition = await session.transport.get(kind, Key("", name))
        conditions = definition.status.conditions or ()
        if is_condition_true(conditions, "Established"):
            return
        accepted = find_condition(conditions, "NamesAccepted")
        if accepted is not None and accepted.status == "False":
            raise CommandError(f"{name}: not served: {accepted.message}")
        if session.clock.monotonic() >= end:
            session.warn(f"{name} is not served yet; see 'kubectl get crd {name} -o yaml'")
            return
        await session.clock.sleep(0.2)


def _resources(
    objects: Iterable[Obj], offered: Offer, served: tuple[APIResource, ...]
) -> list[tuple[Obj, Kind[Obj] | None]]:
    """Return each object with its resource; fail before anything is written."""
    resources = [(obj, _kind(obj, served)) for obj in objects]
    for obj, kind in resources:
        # Sully's server has the kinds built in, and no network policies.
        if kind is None and obj["kind"] not in OPTIONAL and not offered.own:
            raise CommandError(f"the server does not serve {obj['kind']} in {obj['apiVersion']}")
    return resources


def _kind(obj: Obj, served: tuple[APIResource, ...]) -> Kind[Obj] | None:
    group, _, version = obj["apiVersion"].rpartition("/")
    for resource in served:
        if (resource.group, resource.kind) != (group, obj["kind"]):
            continue
        if version in resource.versions:
            return Kind(group, version, resource.plural, resource.kind, dict, resource.namespaced)
    return None


async def wait_until_ready(session: Session, settings: Settings) -> None:
    name, seconds = Key(settings.namespace, NAME), session.options.timeout
    if seconds:
        await wait_ready(session, name, LABELS, seconds)
        print(f'deployment "{name}" is ready')
