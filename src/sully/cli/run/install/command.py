"""`sully install`: install kinds, RBAC and controllers in a Kubernetes cluster."""

import sys
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from sully.install.workload import Settings

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
    # Late imports: `--help` does not need them.
    from sully.cli.run.install.args import settings_of

    _print(settings_of(options, options.evictor))
    return 0


async def _install(session: Session) -> int:
    from sully.cli.run.install.args import settings_of
    from sully.cli.run.install.writes import apply, wait_until_ready
    from sully.client.discovery.capabilities import probe
    from sully.client.discovery.resources import discover
    from sully.domain.capabilities.duties import evictor, two_evictors_warning
    from sully.domain.capabilities.offers import offer

    served = await discover(session.transport)
    offered = offer(await probe(session.transport, served))
    choice = evictor(offered, session.options.evictor)
    if choice.problem:
        raise CommandError(f"--evictor {session.options.evictor}: {choice.problem}", code=2)
    if warning := two_evictors_warning(choice):
        session.warn(f"warning: {warning}")
    settings = settings_of(session.options, "sully" if choice.sully else "server")
    if session.options.dry_run:
        _print(settings)
    else:
        await apply(session, settings, offered, served)
        await wait_until_ready(session, settings)
    return 0


def _print(settings: "Settings") -> None:
    from sully.install.manifests import manifests, to_text

    objects = (obj for objects in manifests(settings).values() for obj in objects)
    sys.stdout.write(to_text(objects))
