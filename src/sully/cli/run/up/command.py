"""`sully up`: run a control plane until it is stopped."""

import gc
import time
from typing import TYPE_CHECKING

from sully.cli.client.options import data_dir_option, parse_address
from sully.cli.command import USAGE_ERROR, CommandError, Options, command, report_error
from sully.cli.data.etcd_options import etcd_address, etcd_options
from sully.cli.run.controller_options import (
    event_options,
    eviction_options,
    history_options,
    lease_options,
    lease_timing,
    log_options,
    notification_options,
    notification_receivers,
    placement_options,
    prometheus_options,
    prometheus_servers,
    warn_of_placement,
)
from sully.cli.run.up.options import (
    access_options,
    api_options,
    controller_switches,
    limit_options,
    listen_option,
    store_option,
)
from sully.cli.run.up.simulated import check_simulation, simulation_options
from sully.machinery.compat import Compat
from sully.machinery.gates import GateError, Gates, parse_gates
from sully.machinery.runtimeconfig import parse_runtime_config
from sully.store.errors import StoreError

if TYPE_CHECKING:
    from sully.app import OpenIdentity

_STARTED = time.perf_counter()
_HELP = """\
Run a control plane in this process: an API server with its store and controllers.

Ctrl-C stops it: watches are closed, and all acknowledged writes are on disk.
"""
_EXAMPLES = """\
# Serve https://127.0.0.1:8443, with data in ./data
sully up

# Serve on all addresses, with data elsewhere
sully up --data-dir /var/lib/sully --listen 0.0.0.0:6443 --log-format json

# Serve on a free port, and store nothing
sully up --store memory --listen 127.0.0.1:0

# Run one of several replicas that share an etcd
sully up --store etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379

# Run with simulated nodes and devices, or with simulated clusters
sully up --simulated-nodes 10 --devices-per-node 4
sully up --simulated-clusters 20

# Run with a demo of GPUs in use
sully up --demo
"""


@command("up", help=_HELP, examples=_EXAMPLES)
@data_dir_option("Data directory. Created if it does not exist.")
@listen_option
@store_option
@etcd_options
@lease_options
@api_options
@controller_switches
@eviction_options
@history_options
@notification_options
@prometheus_options
@event_options
@placement_options
@simulation_options
@access_options
@limit_options
@log_options
def up(options: Options) -> int:
    from sully.runtime.log import configure as configure_log

    configure_log(options.log_format, level=options.log_level)
    try:
        host, port = parse_address("--listen", options.listen, 8443)
        check_simulation(options)
        etcd_address(options.store, options)
        lease_timing(options)
        notification_receivers(options)
        prometheus_servers(options)
        gates = parse_gates(options.feature_gates, Compat.named(options.compat))
        _check_versions(options)
    except (GateError, ValueError) as error:
        raise CommandError(str(error), USAGE_ERROR) from error
    warn_of_placement(options)
    return _run(options, host, port, gates)


def _check_versions(options: Options) -> None:
    """Refuse versions that do not exist, before anything is started."""
    runtime = parse_runtime_config(options.runtime_config)
    if runtime.requested:
        from sully.api import build_scheme  # late: it reads the tables of all kinds

        build_scheme(Compat.named(options.compat), runtime=runtime)


def _run(options: Options, host: str, port: int, gates: Gates) -> int:
    # Late imports: help and usage errors do not need them.
    from sully.cli.run.up.forked import ForkedCall
    from sully.machinery.errors import ApiError
    from sully.runtime import descriptors

    descriptors.raise_limit()
    # Until it is ready: almost everything that a start creates is kept.
    gc.disable()
    code = 0
    try:
        # First: the other process imports its libraries while this one imports the server.
        open_identity = ForkedCall(_open_identity)
        import uvloop

        from sully.cli.run.up.args import config_of
        from sully.cli.run.up.serving import serve

        config = config_of(options, host, port, gates)
        uvloop.run(serve(config, open_identity, started=_STARTED, demo=options.demo))
    except* (StoreError, ApiError, OSError) as group:
        from sully.cli.run.up.serving import start_error

        report_error(start_error(group, options))
        code = 1
    return code


def _open_identity() -> "OpenIdentity":
    from sully.server.net.issuing import open_identity

    return open_identity
