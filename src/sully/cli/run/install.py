"""`sully install`: bring kinds, rights and controllers to a Kubernetes cluster."""

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sully.cli.client.calling import CommandError, Session, call
from sully.cli.client.flags import add_client_flags

if TYPE_CHECKING:
    from sully.client.discovery.resources import APIResource
    from sully.client.transport import Kind
    from sully.domain.capabilities.duties import Evictor
    from sully.domain.capabilities.offers import Offer
    from sully.install.workload import Settings

Obj = dict[str, Any]
MANAGER = "sully-install"
DEFINITIONS = "customresourcedefinitions"
ESTABLISHED_SECONDS = 30.0
"""How long a server may take to serve a new kind before we go without it."""
_EPILOG = """\
examples:
  sully install --dry-run                      what --apply would write, as YAML
  sully install --dry-run --evictor server     the same without asking a server
  sully install --apply --image registry.example/sully:1
  sully install --apply --evictor sully        the cluster's own evictor is switched off

It changes only what it names, so it can be done again. What it brings is also in deploy/, for
kustomize. To take all of it away: sully install --dry-run | kubectl delete -f -
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = (
        "Bring Sully's kinds, rights and controllers to a Kubernetes cluster: custom resource"
        " definitions, roles with what the controllers need and no more, a Deployment of which one"
        " leads, its budget, and where its metrics are."
    )
    parser.epilog = _EPILOG
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--dry-run", action="store_true", help="print the objects, write nothing")
    what.add_argument("--apply", action="store_true", help="write the objects to the cluster")
    add_client_flags(
        parser, namespace="where the controllers run (default: sully-system)", outputs=()
    )
    parser.add_argument("--image", default="", metavar="I", help="the image of the controllers")
    parser.add_argument(
        "--replicas", type=int, default=2, metavar="N", help="how many; one leads (default: 2)"
    )
    parser.add_argument(
        "--evictor",
        default="auto",
        choices=("auto", "server", "sully"),
        help="who evicts; Sully gets the rights to only where it does (default: ask the server)",
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="A,B",
        help="install only these controllers (default: those for devices that the server needs)",
    )
    parser.add_argument(
        "--feature-gates",
        default="",
        metavar="A=true,B=false",
        help="for the controllers, which get the rights that a feature needs",
    )


def run(options: argparse.Namespace) -> int:
    """Print or write the objects."""
    if options.dry_run and options.evictor != "auto":
        return _offline(options)
    return call(options, "install", _install)


def _offline(options: argparse.Namespace) -> int:
    try:
        settings = _settings(options, options.evictor)
    except ValueError as error:
        print(f"sully install: {error}", file=sys.stderr)
        return 2
    sys.stdout.write(_text(settings))
    return 0


async def _install(session: Session) -> int:
    # Late imports: `--help` needs none of this.
    from sully.client.discovery.capabilities import probe
    from sully.client.discovery.resources import discover
    from sully.domain.capabilities.duties import evictor
    from sully.domain.capabilities.offers import offer

    served = await discover(session.transport)
    found = offer(await probe(session.transport, served))
    who = evictor(found, session.options.evictor)
    if who.problem:
        raise CommandError(f"--evictor {session.options.evictor}: {who.problem}", code=2)
    try:
        settings = _settings(session.options, "sully" if who.sully else "server")
    except ValueError as error:
        raise CommandError(str(error), code=2) from error
    if session.options.dry_run:
        sys.stdout.write(_text(settings))
    else:
        await _apply(session, settings, found, served)
    return 0


def _settings(options: argparse.Namespace, evictor: "Evictor") -> "Settings":
    from dataclasses import replace

    from sully.install.workload import Settings
    from sully.machinery.gates import parse_gates
    from sully.remote import chosen_controllers

    if options.replicas < 1:
        raise ValueError("--replicas must be 1 or more")
    given = options.feature_gates
    settings = Settings(
        evictor=evictor,
        replicas=options.replicas,
        gates=parse_gates(given),
        feature_gates=given,
    )
    if options.namespace:
        settings = replace(settings, namespace=options.namespace)
    if options.image:
        settings = replace(settings, image=options.image)
    named = chosen_controllers(options.only)
    if named is not None:
        settings = replace(settings, controllers=tuple(sorted(named)), named=True)
    if named is not None and "eviction" in named and evictor != "sully":
        raise ValueError("--only eviction: the server evicts itself; say --evictor sully if not")
    return settings


def _text(settings: "Settings") -> str:
    from sully.install.manifests import to_text

    return to_text(_objects(settings))


def _objects(settings: "Settings") -> list[Obj]:
    from sully.install.manifests import manifests

    return [each for objects in manifests(settings).values() for each in objects]


async def _apply(
    session: Session, settings: "Settings", found: "Offer", served: "Iterable[APIResource]"
) -> None:
    from sully.client.options import WriteOptions

    options = WriteOptions(field_manager=MANAGER, force=True)
    placed = _placed(_objects(settings), found, tuple(served))
    for obj, kind in placed:
        what = f"{obj['kind']} {obj['metadata']['name']}"
        if kind is None:
            print(f"{what}: left out, the server has no such kind")
            continue
        await session.transport.apply(kind, obj, options)
        print(f"{what}: applied")
    for obj, kind in placed:
        if kind is not None and kind.plural == DEFINITIONS:
            await _established(session, kind, obj["metadata"]["name"])


async def _established(session: Session, kind: "Kind[Obj]", name: str) -> None:
    """Wait until a server serves what a definition describes: it does so a moment later."""
    from sully.client.transport import Key

    end = session.clock.monotonic() + ESTABLISHED_SECONDS
    while True:
        found = await session.transport.get(kind, Key("", name))
        said = {each["type"]: each for each in (found.get("status") or {}).get("conditions") or ()}
        if said.get("Established", {}).get("status") == "True":
            return
        refused = said.get("NamesAccepted", {})
        if refused.get("status") == "False":
            raise CommandError(f"{name}: the server does not serve it: {refused.get('message')}")
        if session.clock.monotonic() >= end:
            session.warn(f"{name} is not served yet; 'kubectl get crd {name} -o yaml' tells why")
            return
        await session.clock.sleep(0.2)


def _placed(
    objects: Iterable[Obj], found: "Offer", served: "tuple[APIResource, ...]"
) -> "list[tuple[Obj, Kind[Obj] | None]]":
    """Return each object with its resource; refuse before anything was written."""
    from sully.install.manifests import OPTIONAL

    placed = [(obj, _kind(obj, served)) for obj in objects]
    for obj, kind in placed:
        # Our own server has our kinds without definitions, and no network.
        if kind is None and obj["kind"] not in OPTIONAL and not found.own:
            raise CommandError(f"the server has no {obj['kind']} in {obj['apiVersion']}")
    return placed


def _kind(obj: Obj, served: "tuple[APIResource, ...]") -> "Kind[Obj] | None":
    from sully.client.transport import Kind

    group, _, version = obj["apiVersion"].rpartition("/")
    for each in served:
        if (each.group, each.kind) == (group, obj["kind"]) and version in each.versions:
            return Kind(group, version, each.plural, each.kind, dict, each.namespaced)
    return None
