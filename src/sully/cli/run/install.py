"""`sully install`: install kinds, RBAC and controllers in a Kubernetes cluster."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from sully.cli.client.options import (
    connection_options,
    duration_option,
    evictor_option,
    feature_gates_option,
    namespace_option,
    whole_number,
)
from sully.cli.client.session import Session, call
from sully.cli.command import USAGE_ERROR, Choice, CommandError, Options, command
from sully.cli.output.formatting import object_name

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
"""How long to wait until a server serves a new kind."""
_SERVER_EVICTS = "--only eviction: the server evicts pods; use --evictor sully if it does not"
_NO_IMAGE = """\
required flag --image not set: there is no published image that nodes could pull
  build and push one: podman build -f deploy/Containerfile -t REGISTRY/sully:TAG . \\
      && podman push REGISTRY/sully:TAG
  then: sully install --apply --image REGISTRY/sully:TAG"""
_HELP = """\
Install Sully in a Kubernetes cluster: custom resource definitions, RBAC with the least privileges
that the controllers need, a Deployment with leader election, its disruption budget, and a Service
for metrics.

With --apply, the command waits until the controllers are ready, and shows why they are not, for
example because the image cannot be pulled.

The command can be repeated: it changes only the objects that it prints. The same objects are in
deploy/ for kustomize.
"""
_EXAMPLES = """\
# Print the objects that --apply would write
sully install --dry-run

# Print them without asking a server
sully install --dry-run --evictor server

# Install with an image of your own
sully install --apply --image registry.example/sully:1

# Install where the eviction controller of the cluster is disabled
sully install --apply --image registry.example/sully:1 --evictor sully

# Also report the health of NVIDIA GPUs
sully install --apply --image registry.example/sully:1 --monitor nvml

# Uninstall
sully install --dry-run | kubectl delete -f -
"""


@command("install", usage="--dry-run|--apply [flags]", help=_HELP, examples=_EXAMPLES)
@click.option("--dry-run", is_flag=True, help="Print the objects, write nothing.")
@click.option("--apply", is_flag=True, help="Write the objects to the cluster.")
@connection_options
@namespace_option("Namespace for the controllers (default: sully-system).")
@click.option(
    "--image",
    default="",
    metavar="IMAGE",
    help="Image of the controllers, which the nodes can pull. Required with --apply: there is no"
    " published one.",
)
@click.option(
    "--replicas",
    type=whole_number(1),
    default="2",
    show_default=True,
    metavar="N",
    help="Number of replicas, of which one is the leader.",
)
@evictor_option(
    "Who evicts pods. Only with sully are the controllers allowed to.",
    show_default="auto, which asks the server",
)
@click.option(
    "--only",
    default="",
    metavar="A,B",
    show_default="those for devices that the server needs",
    help="Install only these controllers.",
)
@click.option(
    "--monitor",
    default="",
    type=Choice(("", "nvml")),
    metavar="LIBRARY",
    help="Also install agents that report the health of devices, on all nodes with the label"
    " nvidia.com/gpu.present=true: nvml (see 'sully monitor').",
)
@duration_option(
    "--timeout",
    default="2m",
    help="With --apply, how long to wait until the controllers are ready. 0s does not wait.",
)
@feature_gates_option("For the controllers, which get the privileges that a feature needs.")
def install(options: Options) -> int:
    if options.dry_run == options.apply:
        raise CommandError("exactly one of --dry-run and --apply is required", USAGE_ERROR)
    if options.apply and not options.image:
        raise CommandError(_NO_IMAGE, USAGE_ERROR)
    if options.dry_run and options.evictor != "auto":
        return _offline(options)
    return call(options, "install", _install)


def _offline(options: Options) -> int:
    sys.stdout.write(_text(_settings(options, options.evictor)))
    return 0


async def _install(session: Session) -> int:
    # Late imports: `--help` does not need them.
    from sully.client.discovery.capabilities import probe
    from sully.client.discovery.resources import discover
    from sully.domain.capabilities.duties import evictor
    from sully.domain.capabilities.offers import offer

    served = await discover(session.transport)
    offered = offer(await probe(session.transport, served))
    choice = evictor(offered, session.options.evictor)
    if choice.problem:
        raise CommandError(f"--evictor {session.options.evictor}: {choice.problem}", code=2)
    settings = _settings(session.options, "sully" if choice.sully else "server")
    if session.options.dry_run:
        sys.stdout.write(_text(settings))
    else:
        await _apply(session, settings, offered, served)
        await _wait_ready(session, settings)
    return 0


async def _wait_ready(session: Session, settings: "Settings") -> None:
    from sully.cli.run.rollout import wait_ready
    from sully.client.transport import Key
    from sully.install.workload import LABELS, NAME

    name, seconds = Key(settings.namespace, NAME), session.options.timeout
    if seconds:
        await wait_ready(session, name, LABELS, seconds)
        print(f'deployment "{name}" is ready')


def _settings(options: Options, evictor: "Evictor") -> "Settings":
    from dataclasses import replace

    from sully.install.workload import Settings
    from sully.machinery.gates import parse_gates
    from sully.remote import chosen_controllers

    feature_gates = options.feature_gates
    try:
        gates, named = parse_gates(feature_gates), chosen_controllers(options.only)
    except ValueError as error:
        raise CommandError(str(error), USAGE_ERROR) from error
    settings = Settings(
        evictor=evictor,
        replicas=options.replicas,
        gates=gates,
        feature_gates=feature_gates,
        monitor=options.monitor,
    )
    if options.namespace:
        settings = replace(settings, namespace=options.namespace)
    if options.image:
        settings = replace(settings, image=options.image)
    if named is not None:
        settings = replace(settings, controllers=tuple(sorted(named)), named=True)
    if named is not None and "eviction" in named and evictor != "sully":
        raise CommandError(_SERVER_EVICTS, USAGE_ERROR)
    return settings


def _text(settings: "Settings") -> str:
    from sully.install.manifests import to_text

    return to_text(_objects(settings))


def _objects(settings: "Settings") -> list[Obj]:
    from sully.install.manifests import manifests

    return [obj for objects in manifests(settings).values() for obj in objects]


async def _apply(
    session: Session, settings: "Settings", offered: "Offer", served: "Iterable[APIResource]"
) -> None:
    from sully.client.options import WriteOptions

    options = WriteOptions(field_manager=MANAGER, force=True)
    resources = _resources(_objects(settings), offered, tuple(served))
    for obj, kind in resources:
        if kind is None:
            print(f"{object_name(obj)} skipped (the server does not serve this kind)")
            continue
        await session.transport.apply(kind, obj, options)
        print(f"{object_name(obj)} serverside-applied")
    for obj, kind in resources:
        if kind is not None and kind.plural == DEFINITIONS:
            await _established(session, kind, obj["metadata"]["name"])


async def _established(session: Session, kind: "Kind[Obj]", name: str) -> None:
    """Wait until the server serves a kind, which takes a moment."""
    from sully.client.transport import Key

    end = session.clock.monotonic() + ESTABLISHED_SECONDS
    while True:
        definition = await session.transport.get(kind, Key("", name))
        reported = (definition.get("status") or {}).get("conditions") or ()
        conditions = {condition["type"]: condition for condition in reported}
        if conditions.get("Established", {}).get("status") == "True":
            return
        accepted = conditions.get("NamesAccepted", {})
        if accepted.get("status") == "False":
            raise CommandError(f"{name}: not served: {accepted.get('message')}")
        if session.clock.monotonic() >= end:
            session.warn(f"{name} is not served yet; see 'kubectl get crd {name} -o yaml'")
            return
        await session.clock.sleep(0.2)


def _resources(
    objects: Iterable[Obj], offered: "Offer", served: "tuple[APIResource, ...]"
) -> "list[tuple[Obj, Kind[Obj] | None]]":
    """Return each object with its resource; fail before anything is written."""
    from sully.install.manifests import OPTIONAL

    resources = [(obj, _kind(obj, served)) for obj in objects]
    for obj, kind in resources:
        # Sully's server has the kinds built in, and no network policies.
        if kind is None and obj["kind"] not in OPTIONAL and not offered.own:
            raise CommandError(f"the server does not serve {obj['kind']} in {obj['apiVersion']}")
    return resources


def _kind(obj: Obj, served: "tuple[APIResource, ...]") -> "Kind[Obj] | None":
    from sully.client.transport import Kind

    group, _, version = obj["apiVersion"].rpartition("/")
    for resource in served:
        if (resource.group, resource.kind) != (group, obj["kind"]):
            continue
        if version in resource.versions:
            return Kind(group, version, resource.plural, resource.kind, dict, resource.namespaced)
    return None
