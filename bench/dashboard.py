"""The dashboard in a real browser: the first picture, frames while the fleet changes, memory.

    python bench/dashboard.py [--devices 10000] [--seconds 60] [--changes 200]

A control plane with simulated nodes runs beside the browser; devices are tainted and untainted by
DeviceTaintRules, as many times per second as asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
import time
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
PICTURE_SECONDS, FRAME_MS = 2.0, 100.0
FRAMES = """() => {
  window.frames_ = [];
  let last = performance.now();
  const step = (now) => { frames_.push(now - last); last = now; requestAnimationFrame(step); };
  requestAnimationFrame(step);
}"""


async def _change(kubeconfig: Path, nodes: int, rate: float, stop: threading.Event) -> int:
    """Taint and untaint pools at a rate; return how many writes were made."""
    async with HttpTransport(find_access(str(kubeconfig))) as transport:
        begun, writes = time.perf_counter(), 0
        while not stop.is_set():
            due = int((time.perf_counter() - begun) * rate) - writes
            pairs = [(writes // 2 + at) % nodes for at in range(min(due, 64) // 2)]
            # A rule is deleted after it was created.
            for remove in (False, True):
                await asyncio.gather(*(_one(transport, x, remove=remove) for x in pairs))
            writes += 2 * len(pairs)
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
    begun = time.perf_counter()
    page.goto(up.dashboard)
    page.wait_for_selector(".fleet canvas")
    first = time.perf_counter() - begun
    # Again, with watches that run: what a viewer waits for after the first page.
    begun = time.perf_counter()
    page.reload()
    page.wait_for_selector(".fleet canvas")
    again = time.perf_counter() - begun
    print(f"devices {args.devices}: first picture {first:.2f} s, reload {again:.2f} s")
    return _frames(page, up.kubeconfig, nodes, args) and again < PICTURE_SECONDS


def _wait_published(kubeconfig: Path, nodes: int) -> None:
    from sully.views.kinds import SLICES

    async def wait() -> None:
        async with HttpTransport(find_access(str(kubeconfig))) as transport:
            listed = 0
            while listed < nodes:
                listed = len((await transport.list(SLICES)).items)
                await asyncio.sleep(0.5)

    asyncio.run(wait())


def _frames(page: Any, kubeconfig: Path, nodes: int, args: argparse.Namespace) -> bool:
    stop, writes = threading.Event(), [0]

    def work() -> None:
        writes[0] = asyncio.run(_change(kubeconfig, nodes, args.changes, stop))

    session = page.context.new_cdp_session(page)

    def heap() -> float:
        session.send("HeapProfiler.collectGarbage")
        return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6

    memory = [heap()]
    page.evaluate(FRAMES)
    changing = threading.Thread(target=work)
    begun = time.perf_counter()
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
    rate = writes[0] / (time.perf_counter() - begun)
    half, most = frames[len(frames) // 2], frames[int(len(frames) * 0.99)]
    print(
        f"{rate:.0f} changes/s for {args.seconds:.0f} s: frames p50 {half:.0f} ms,"
        f" p99 {most:.0f} ms, longest {frames[-1]:.0f} ms"
    )
    print(f"heap of the page: {', '.join(f'{x:.0f}' for x in memory)} MB")
    return frames[-1] < FRAME_MS


if __name__ == "__main__":
    raise SystemExit(main())
