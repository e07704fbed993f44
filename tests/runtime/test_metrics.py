from __future__ import annotations

import subprocess
import sys

from sully.runtime.metrics import Metrics, RequestLabels
from sully.runtime.workqueue import WorkQueue
from sully.testing.clock import FakeClock


def value(metrics: Metrics, series: str) -> float | None:
    """Return the lines of the page about one series."""
    for line in metrics.render().decode().splitlines():
        name, _, number = line.rpartition(" ")
        if name == series:
            return float(number)
    return None


def test_requests_are_counted_under_upstream_names() -> None:
    metrics = Metrics()
    labels = RequestLabels("LIST", group="resource.k8s.io", version="v1", resource="resourceslices")
    metrics.requests.answered(labels, 200, 0.03)
    metrics.requests.answered(labels, 200, 0.5)
    metrics.requests.counted(labels, 410)
    metrics.requests.inflight["readOnly"] += 1
    metrics.requests.long_running(labels).inc()

    rest = (
        'component="apiserver",dry_run="",group="resource.k8s.io",'
        'resource="resourceslices",scope="",subresource="",verb="LIST",version="v1"}'
    )
    assert value(metrics, 'apiserver_request_total{code="200",' + rest) == 2
    assert value(metrics, 'apiserver_request_total{code="410",' + rest) == 1
    assert value(metrics, "apiserver_request_duration_seconds_count{" + rest) == 2
    bucket = rest.replace('group="resource.k8s.io",', 'group="resource.k8s.io",le="0.05",')
    assert value(metrics, "apiserver_request_duration_seconds_bucket{" + bucket) == 1
    assert value(metrics, 'apiserver_current_inflight_requests{request_kind="readOnly"}') == 1
    open_now = "apiserver_longrunning_requests{" + rest.replace('dry_run="",', "")
    assert value(metrics, open_now) == 1


async def test_a_queue_is_observed() -> None:
    metrics, clock = Metrics(), FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock, observer=metrics.queue("evict"))
    queue.add("a")
    queue.add("b")
    clock.advance(0.05)
    key = await queue.get()
    queue.retry(key)
    queue.done(key)

    assert value(metrics, 'workqueue_depth{name="evict"}') == 1
    assert value(metrics, 'workqueue_adds_total{name="evict"}') == 2
    assert value(metrics, 'workqueue_retries_total{name="evict"}') == 1
    assert value(metrics, 'workqueue_queue_duration_seconds_bucket{le="0.1",name="evict"}') == 1
    assert value(metrics, 'workqueue_queue_duration_seconds_bucket{le="0.01",name="evict"}') == 0
    assert value(metrics, 'workqueue_work_duration_seconds_count{name="evict"}') == 1


def test_two_registries_do_not_mix() -> None:
    one, two = Metrics(), Metrics()
    one.counter("sully_things_total", "Things.").inc()
    two.counter("sully_things_total", "Things.").inc(5)
    one.gauge("sully_level", "A level.").set(3)

    assert value(one, "sully_things_total") == 1
    assert value(two, "sully_things_total") == 5
    assert value(two, "sully_level") is None
    assert b"_created" not in one.render()


def test_importing_metrics_does_not_import_what_is_slow() -> None:
    modules = ["backoff", "clock", "ids", "log", "metrics", "tasks", "workqueue"]
    imports = ", ".join(f"sully.runtime.{module}" for module in modules)
    script = (
        f"import sys, {imports}; print({{'structlog', 'prometheus_client'}} & set(sys.modules))"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout == "set()\n"
