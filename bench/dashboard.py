"""The dashboard in a real browser: the first picture, frames while the fleet changes, memory.

    python bench/dashboard.py [--devices 10000] [--seconds 60] [--changes 200]

A control plane with simulated nodes runs beside the browser; devices are tainted and untainted by
DeviceTaintRules, as many times per second as asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from chromium import chromium, find_chromium
from sully.client.http.transport import HttpTransport
from sully.client.kubeconfig.kubeconfig import find_access
from sully.client.transport import Key
from sully.testing.cluster import Process, process
from sully.views.kinds import RULES

PER_NODE = 8
PARALLEL = 64
PICTURE_SECONDS, FRAME_MS = 2.0, 100.0
FRAMES = """async () => {
  const { changes } = await import("./store.js");
  const handle = changes.devices;
  window.rows_ = 0;
  changes.devices = (data) => { rows_ += data.changed.length + data.removed.length; handle(data); };
  window.frames_ = [];
  let last = performance.now();
  const step = (now) => { frames_.push(now - last); last = now; requestAnimationFrame(step); };
  requestAnimationFrame(step);
}"""


async def _change(kubeconfig: Path, nodes: int, rate: float, stop: threading.Event) -> int:
    """Taint and untaint devices at a rate; return how many writes were made.

    A device stays tainted for about a second, so that each write changes what the page shows.
    """
    async with HttpTransport(find_access(str(kubeconfig))) as transport:
        begun, writes = time.perf_counter(), 0
        tainted: deque[int] = deque()
        numbers = itertools.cycle(range(nodes))
        while not stop.is_set():
            due = int((time.perf_counter() - begun) * rate) - writes
            batch = []
            for _ in range(min(due, PARALLEL)):
                if remove := len(tainted) >= min(rate, nodes) / 2:
                    number = tainted.popleft()
                else:
                    tainted.append(number := next(numbers))
                batch.append(_one(transport, number, remove=remove))
            await asyncio.gather(*batch)
            writes += len(batch)
            await asyncio.sleep(0.01)
    return writes


async def _one(transport: HttpTransport, number: int, *, remove: bool) -> None:
    name = f"bench-{number}"
    if remove:
        await transport.delete(RULES, Key("", name))
        return
    selector = {"pool": f"worker-{number:04}", "device": "gpu-0"}
    taint = {"key": "example.com/bench", "effect": "NoSchedule"}
    body = {"metadata": {"name": name}, "spec": {"deviceSelector": selector, "taint": taint}}
    await transport.create(RULES.read_as(dict[str, Any]), body)


def main() -> int:
    """Measure, and print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--devices", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--changes", type=float, default=200)
    args = parser.parse_args()
    program = find_chromium()
    if program is None:
        print("no Chromium: tools/fetch-chromium fetches one on Debian", file=sys.stderr)
        return 1
    nodes = args.devices // PER_NODE
    flags = ("--simulated-nodes", str(nodes), "--devices-per-node", str(PER_NODE))
    with process("--store", "memory", "--log-level", "error", *flags) as up:
        _wait_published(up.kubeconfig, nodes)
        with chromium(program) as browser:
            return 0 if _measure(browser, up, nodes, args) else 1


def _measure(browser: Any, up: Process, nodes: int, args: argparse.Namespace) -> bool:
    page = browser.new_page(ignore_https_errors=True, viewport={"width": 1280, "height": 900})
    page.set_default_timeout(300_000)
    server = up.child.pid
    first = _picture(page, server, lambda: page.goto(up.dashboard))
    # Again, with watches that run: what a viewer waits for after the first page.
    again = _picture(page, server, page.reload)
    print(
        f"devices {args.devices}: first picture {first[0]:.2f} s ({first[1]:.2f} s CPU of the"
        f" server), reload {again[0]:.2f} s ({again[1]:.2f} s); load {os.getloadavg()[0]:.1f}"
    )
    frames = _frames(page, server, up.kubeconfig, nodes, args)
    return frames and first[0] < PICTURE_SECONDS


def _picture(page: Any, server: int, load: Callable[[], object]) -> tuple[float, float]:
    """Return how long the fleet takes to be drawn, and the CPU time of the server meanwhile."""
    begun, used = time.perf_counter(), _cpu(server)
    load()
    page.wait_for_selector(".fleet canvas")
    # The next frame has the cells.
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    return time.perf_counter() - begun, _cpu(server) - used


def _cpu(server: int) -> float:
    fields = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait_published(kubeconfig: Path, nodes: int) -> None:
    from sully.views.kinds import SLICES

    async def wait() -> None:
        async with HttpTransport(find_access(str(kubeconfig))) as transport:
            listed = 0
            while listed < nodes:
                listed = len((await transport.list(SLICES)).items)
                await asyncio.sleep(0.5)

    asyncio.run(wait())


def _frames(page: Any, server: int, kubeconfig: Path, nodes: int, args: argparse.Namespace) -> bool:
    stop, writes = threading.Event(), [0]

    def work() -> None:
        writes[0] = asyncio.run(_change(kubeconfig, nodes, args.changes, stop))

    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def busy() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(float(x["value"]) for x in metrics if x["name"] == "TaskDuration")

    def heap() -> float:
        session.send("HeapProfiler.collectGarbage")
        return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6

    memory = [heap()]
    page.evaluate(FRAMES)
    changing = threading.Thread(target=work)
    begun, used, worked = time.perf_counter(), _cpu(server), busy()
    changing.start()
    frames: list[float] = []
    while (spent := time.perf_counter() - begun) < args.seconds:
        page.wait_for_timeout(min(10_000, max(1, (args.seconds - spent) * 1000)))
        frames += page.evaluate("() => frames_.splice(0)")
        memory.append(heap())
        # The collection itself is not part of what is measured.
        page.evaluate("() => frames_.splice(0)")
    stop.set()
    changing.join()
    frames.sort()
    spent = time.perf_counter() - begun
    rate, shown = writes[0] / spent, page.evaluate("() => rows_") / spent
    half, most = frames[len(frames) // 2], frames[int(len(frames) * 0.99)]
    print(
        f"{rate:.0f} writes/s for {args.seconds:.0f} s, {shown:.0f} changes/s on the page: frames"
        f" p50 {half:.0f} ms, p99 {most:.0f} ms, longest {frames[-1]:.0f} ms;"
        f" CPU per second: server {(_cpu(server) - used) / spent:.2f} s,"
        f" page {(busy() - worked) / spent:.2f} s; load {os.getloadavg()[0]:.1f}"
    )
    print(f"heap of the page: {', '.join(f'{x:.0f}' for x in memory)} MB")
    return frames[-1] < FRAME_MS and shown >= 0.9 * args.changes


if __name__ == "__main__":
    raise SystemExit(main())
