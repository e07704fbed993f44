"""What a Prometheus query returns about devices.

A query returns one sample for each device that it knows about: not 0 is a fault, 0 is none. A
device without a sample is unknown, and so are all devices while queries fail: an exporter that is
down must not look like healthy devices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Final, Literal

import msgspec

from sully.api.sully.durations import duration
from sully.api.sully.policies.prometheus_validation import TIMEOUT_MAX
from sully.api.sully.types import DeviceTaintPolicyPrometheus
from sully.domain.devices.identity import normal_pci
from sully.domain.health.matching import Identity

BODY_MAX: Final = 16 * 2**20
"""Bytes of a response."""
SAMPLES_MAX: Final = 100_000
INTERVAL: Final = timedelta(seconds=30)
TIMEOUT: Final = timedelta(seconds=10)
LABELS: Final = {"uuid": "UUID", "pciAddress": "pci_bus_id", "node": "Hostname", "index": "gpu"}
"""The labels by which NVIDIA's DCGM exporter names a GPU."""
_NOT_QUERIED: Final = "Prometheus was not queried yet"


class QueryError(Exception):
    """Why a query has no result."""


class _Sample(msgspec.Struct):
    value: tuple[float, str]
    metric: dict[str, str] = {}


class _Data(msgspec.Struct, rename="camel"):
    result_type: Literal["vector", "matrix", "scalar", "string"]
    result: msgspec.Raw


class _Answer(msgspec.Struct):
    status: Literal["success"]
    data: _Data


_ANSWER: Final = msgspec.json.Decoder(_Answer)
_SAMPLES: Final = msgspec.json.Decoder(list[_Sample])


class QueryResult(msgspec.Struct, frozen=True):
    """The samples of one query, by what identifies a device; or why there are none."""

    values: Mapping[str, float] = msgspec.field(default_factory=dict)
    problem: str = ""


def interval_of(source: DeviceTaintPolicyPrometheus) -> timedelta:
    """Return how often to query."""
    return max(duration(source.interval) or INTERVAL, timedelta(seconds=1))


def timeout_of(source: DeviceTaintPolicyPrometheus) -> timedelta:
    """Return how long a query may take: never longer than the interval."""
    # Another server may have stored more than the limit.
    return min(duration(source.timeout) or TIMEOUT, interval_of(source), TIMEOUT_MAX)


def lifetime_of(source: DeviceTaintPolicyPrometheus) -> timedelta:
    """Return how long a result counts; after that devices are unknown."""
    return 2 * interval_of(source) + timeout_of(source)


def parse_response(source: DeviceTaintPolicyPrometheus, body: bytes) -> dict[str, float]:
    """Return the samples of a response by device; raise QueryError if it has no vector."""
    samples = _samples(body)
    if len(samples) > SAMPLES_MAX:
        raise QueryError(f"the query returns more than {SAMPLES_MAX} samples")
    values: dict[str, float] = {}
    for sample in samples:
        value = _value(sample)
        for key in _keys(source, sample):
            # Several samples of a device: one that is a fault wins, and one that is not a number.
            old = values.get(key, 0.0)
            values[key] = old if math.isnan(old) or (old and not math.isnan(value)) else value
    return values


def _samples(body: bytes) -> list[_Sample]:
    """Return the samples of a response, which is not trusted: it may be anything."""
    try:
        data = _ANSWER.decode(body).data
        if data.result_type != "vector":
            raise QueryError(f"the query returns a {data.result_type}, not an instant vector")
        return _SAMPLES.decode(data.result)
    except msgspec.ValidationError:
        raise QueryError("the response is not that of a Prometheus query") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise QueryError("the response is not JSON") from None
    except RecursionError:
        raise QueryError("the response is nested too deeply") from None


def _value(sample: _Sample) -> float:
    try:
        return float(sample.value[1])
    except (OverflowError, ValueError):
        raise QueryError("a sample of the response has no value") from None


def _keys(source: DeviceTaintPolicyPrometheus, sample: _Sample) -> list[str]:
    """Return what identifies the device of a sample, the most specific only."""
    names = {name: source.labels.get(name) or label for name, label in LABELS.items()}
    labels = {name: sample.metric.get(label, "") for name, label in names.items()}
    if labels["uuid"]:
        return [f"uuid {labels['uuid'].lower()}"]
    if labels["node"] and labels["pciAddress"]:
        return [f"pci {labels['node']} {normal_pci(labels['pciAddress'])}"]
    if labels["node"] and labels["index"]:
        return [f"index {labels['node']} {labels['index']}"]
    return []


def sample_of(result: QueryResult | None, device: Identity | None) -> float:
    """Return the value for a device; raise QueryError if there is none that counts."""
    if result is None:
        raise QueryError(_NOT_QUERIED)
    if result.problem:
        raise QueryError(result.problem)
    keys: list[str] = []
    if device is not None:
        keys += [f"uuid {uuid}" for uuid in sorted(device.uuids)]
        keys += [f"pci {device.node} {address}" for address in sorted(device.pci_addresses)]
        keys += [f"index {device.node} {device.index}"] if device.index is not None else []
    values = [result.values[key] for key in keys if key in result.values]
    if not values:
        raise QueryError("the query returns no sample for the device")
    if any(map(math.isnan, values)):
        raise QueryError("the query returns no number for the device")
    return max(values, key=abs)
