"""What the flags of `sully up` configure."""

from sully.app import Config
from sully.cli.command import Options
from sully.cli.data.etcd_options import etcd_address
from sully.cli.run.controller_options import (
    event_retention,
    eviction_settings,
    history_retention,
    lease_timing,
    notification_receivers,
    placement_settings,
    prometheus_servers,
)
from sully.cli.run.up.simulated import simulated_clusters, simulated_nodes
from sully.controller_setup import CONTROLLERS
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates
from sully.machinery.runtimeconfig import parse_runtime_config
from sully.server.flowcontrol.limits import Allowance
from sully.server.net.connections import ConnectionLimits
from sully.server.net.listen import ConnectionSettings
from sully.store.etcd.address import SCHEME


def config_of(options: Options, host: str, port: int, gates: Gates) -> Config:
    return Config(
        data_dir=options.data_dir,
        host=host,
        port=port,
        store=etcd_address(options.store, options) or options.store,
        leader_elect=options.store.startswith(SCHEME),
        timing=lease_timing(options),
        gates=gates,
        runtime=parse_runtime_config(options.runtime_config),
        compat=Compat.named(options.compat),
        names=tuple(options.tls_san),
        anonymous=options.anonymous_auth == "true",
        audit_log=options.audit_log,
        audit_reads=options.audit_reads,
        eviction=eviction_settings(options),
        placement=placement_settings(options),
        allowance=Allowance(
            reads=options.max_requests_inflight,
            writes=options.max_mutating_requests_inflight,
            watches=options.max_watches_per_user,
        ),
        connections=ConnectionSettings(
            ConnectionLimits(
                total=options.max_connections,
                per_address=options.max_connections_per_address,
                per_user=options.max_connections_per_user,
            )
        ),
        controllers=_controllers(options),
        history=history_retention(options),
        receivers=notification_receivers(options),
        prometheus_servers=prometheus_servers(options),
        otlp_endpoint=options.otlp_endpoint or "",
        event_ttl=event_retention(options),
        simulated_nodes=simulated_nodes(options),
        simulated_clusters=simulated_clusters(options),
        restart_controllers=True,
    )


def _controllers(options: Options) -> frozenset[str] | None:
    if options.disable_controllers:
        return frozenset()
    return frozenset(CONTROLLERS) - {"scheduling"} if options.disable_scheduler else None
