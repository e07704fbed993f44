"""Input other than bodies of requests to the API: each is read or refused."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from tempfile import NamedTemporaryFile

from sully.api.cluster.taints.history import TAINT_HISTORY, read_history
from sully.api.cluster.taints.policy_states import read_states
from sully.api.cluster.taints.policy_taints import read_taint_ids
from sully.api.resource.annotations import (
    ALLOCATED_ATTRIBUTES,
    EXPIRES_AT,
    PAUSED,
    SUPPRESSES,
    expiry,
    pause_reason,
)
from sully.api.resource.eviction_rate import BURST_ANNOTATION, RATE_ANNOTATION, rate_of
from sully.api.sully.types import DeviceTaintPolicyPrometheus
from sully.cli.command import Options
from sully.cli.run.controller_options import notification_receivers, prometheus_servers
from sully.client.kubeconfig.credentials import AccessError
from sully.client.kubeconfig.exec_plugin import ExecPlugin, read_credential
from sully.domain.devicepolicies import rules as policies
from sully.domain.devicepolicies.sources.prometheus import QueryError, parse_response
from sully.domain.devices.rules import recorded
from sully.domain.devices.selectors import DeviceSelectorError, matches
from sully.domain.devices.suppression import suppression_of
from sully.domain.drain import rules as drains
from sully.domain.health.signal_bodies import BodyError, parse_alerts, parse_signals
from sully.domain.scheduling import diagnosis
from sully.machinery.cel import CostBudget
from sully.server.http.placements.bodies import UnreadableBodyError, read_body
from sully.testing import builders

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLUGIN = ExecPlugin(
    command="login", api_version="client.authentication.k8s.io/v1", origin="kubeconfig"
)
SELECTORS = builders.cel(
    'device.capacity["d"].m.isGreaterThan(quantity("1"))',
    'device.attributes["d"].x.isGreaterThan(semver("1.0.0"))',
)
COST = 1_000_000


def annotation(data: bytes) -> None:
    """Read an annotation as everything that Sully keeps in one."""
    text = data.decode(errors="replace")
    for content in recorded({ALLOCATED_ATTRIBUTES: text}).values():
        with suppress(DeviceSelectorError):
            matches(SELECTORS, content, CostBudget(COST))
    drain = drains.decode_state([{drains.STATE: text}])
    assert drain.full_at is None or drain.full_at.tzinfo
    rule = builders.rule(
        annotations={policies.STATE: text, SUPPRESSES: text, EXPIRES_AT: "2026-01-01T00:00:00Z"}
    )
    state = policies.decode_state(rule)
    assert all(time.tzinfo for time in (state.since, *state.fault_times) if time)
    suppression_of(rule)
    diagnosis.decode(text)
    read_history({TAINT_HISTORY: text})
    read_states(text)
    read_taint_ids(text)
    rate_of(None, {RATE_ANNOTATION: text, BURST_ANNOTATION: text})
    expiry({EXPIRES_AT: text})
    pause_reason({PAUSED: text})


def credential(data: bytes) -> None:
    """Read what a credential plugin printed."""
    with suppress(AccessError):
        result, _ = read_credential(PLUGIN, data)
        assert isinstance(result.token, str)


def settings(data: bytes) -> None:
    """Read the files of notifications and of Prometheus servers."""
    with NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with suppress(ValueError):
            notification_receivers(Options(notifications=file.name))
        with suppress(ValueError):
            prometheus_servers(Options(prometheus_servers=file.name))


def response(data: bytes) -> None:
    """Read what Prometheus answers, and what monitoring sends."""
    with suppress(QueryError):
        parse_response(DeviceTaintPolicyPrometheus(url="https://p", query="up"), data)
    for parse in (parse_signals, parse_alerts):
        with suppress(BodyError):
            parse(data, now=NOW)


def placement(data: bytes) -> None:
    """Read the body of a request to explain a placement."""
    with suppress(UnreadableBodyError):
        read_body(data)
