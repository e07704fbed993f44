"""What the flags of `sully install` configure."""

from dataclasses import replace

from sully.cli.command import USAGE_ERROR, CommandError, Options
from sully.domain.capabilities.duties import Evictor
from sully.install.workload import Settings
from sully.machinery.gates import parse_gates
from sully.remote import chosen_controllers

_SERVER_EVICTS = "--only eviction: the server evicts pods; use --evictor sully if it does not"


def settings_of(options: Options, evictor: Evictor) -> Settings:
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
