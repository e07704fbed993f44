"""The long runs: kills, lost machines, hostile input, all examples. `make robust` runs it.

    python tools/fault_injection.py [PART] [--kills 300] [--pods 1000] [--leak-pods 100000]
        [--inject 1000] [--store etcd] [--faults 19] [--examples 30] [--fuzz-seconds 60] [--seed N]

PART is crashes, faults, controllers, replicas, inputs, hostile, leaks, properties,
clients, atheris or all (without atheris, which is not installed by default).

A failure prints the seed; the same seed with the same number repeats the run.
"""

import argparse
import asyncio
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_PROGRAM = "python tools/fault_injection.py"


def main() -> int:
    """Run the selected parts; 0 if there was no problem."""
    options = _parser().parse_args()
    # As Ctrl-C: servers that a part has started are stopped.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**9)
    chosen = (
        tuple(part for part in PARTS if part != OPTIONAL)
        if options.what == "all"
        else (options.what,)
    )
    code = 0
    try:
        for name in chosen:
            if "SULLY_NETWORK" not in os.environ:  # otherwise it is printed already
                print(f"{name}: seed {seed}", flush=True)
            code |= PARTS[name](options, seed)
    except KeyboardInterrupt:
        print("\nstopped", flush=True)
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", nargs="?", default="all", choices=(*PARTS, "all"))
    parser.add_argument("--kills", type=int, default=300, help="how many (default: 300)")
    parser.add_argument("--pods", type=int, default=1000, help="how many (default: 1000)")
    parser.add_argument(
        "--leak-pods", type=int, default=100_000, help="created and deleted (default: 100000)"
    )
    parser.add_argument(
        "--inject", type=int, default=1000, help="faults of disks, networks ... (default: 1000)"
    )
    parser.add_argument(
        "--store", choices=("sqlite", "etcd"), help="where --inject does so (default: both)"
    )
    parser.add_argument("--faults", type=int, default=19, help="of machines (default: 19)")
    parser.add_argument("--figures", type=Path, help="file for the result of a part, as JSON")
    parser.add_argument("--examples", type=int, default=30, help="per operation (default: 30)")
    parser.add_argument(
        "--fuzz-seconds", type=int, default=60, help="per target of atheris (default: 60)"
    )
    parser.add_argument("--seed", type=int, help="repeat a run (default: a new one)")
    return parser


def _crashes(options: argparse.Namespace, seed: int) -> int:
    from crashes.rounds import Figures, Rounds

    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sully-robust-") as folder:
        directory = Path(folder) / "data"
        rounds = Rounds(directory, seed)

        def progress(figures: Figures) -> None:
            _show(figures.kills, options.kills, figures.counts["acknowledged"], began)

        try:
            asyncio.run(rounds.run(options.kills, progress))
        finally:
            print()
            _report(rounds.figures)
        opened = asyncio.run(_open_time(directory))
    print(f"  opening the store alone         {opened * 1000:.0f} ms")
    for problem in rounds.figures.problems:
        print(f"  PROBLEM {problem}")
    if rounds.figures.problems:
        print(f"  again: {_PROGRAM} crashes --kills {options.kills} --seed {seed}")
    return 1 if rounds.figures.problems else 0


def _show(done: int, total: int, writes: int, began: float) -> None:
    took = time.monotonic() - began
    line = f"  {done}/{total} kills, {writes} writes acknowledged, {took:.0f} s"
    end = "" if sys.stdout.isatty() else "\n"
    if end == "" or done % 25 < 2:
        print(f"\r{line}" if end == "" else line, end=end, flush=True)


def _report(figures: object) -> None:
    from crashes.rounds import Figures

    assert isinstance(figures, Figures)
    counts, ready = figures.counts, sorted(figures.ready) or [0.0]
    lost = sum("LOST" in text for text in figures.problems)
    print(f"  kills                           {figures.kills}, {figures.early_kills} at start")
    print(f"  suspensions                     {figures.suspensions}")
    print(f"  writes acknowledged             {counts['acknowledged']}")
    print(f"  acknowledged and lost           {lost}")
    print(f"  in doubt when killed            {counts['in doubt']}")
    print(f"  events compared after restart   {counts['events replayed']}")
    print(
        f"  start to ready                  median {statistics.median(ready):.2f} s,"
        f" longest {ready[-1]:.2f} s"
    )


async def _open_time(directory: Path) -> float:
    from sully.store.sqlite.store import SqliteStore

    began = time.perf_counter()
    async with await SqliteStore.open(directory):
        return time.perf_counter() - began


def _faults(options: argparse.Namespace, seed: int) -> int:
    from faults.report import run

    code = run(options.inject, seed, options.figures, options.store)
    if code:
        where = f" --store {options.store}" if options.store else ""
        print(f"  again: {_PROGRAM} faults --inject {options.inject}{where} --seed {seed}")
    return code


def _controllers(options: argparse.Namespace, seed: int) -> int:
    from kills.rounds import Figures, Rounds

    began = time.monotonic()
    latest = ""

    def progress(figures: Figures) -> None:
        nonlocal latest
        took = f"{time.monotonic() - began:.0f} s"
        line = f"  {figures.kills} kills, {figures.bound} bound, {figures.evicted} evicted, {took}"
        if took != latest and sys.stdout.isatty():
            print(f"\r{line}", end="", flush=True)
        latest = took

    figures = asyncio.run(Rounds(options.pods, seed).run(progress))
    print(f"\r  controllers killed              {figures.kills}")
    print(
        f"  pods bound, evicted, recorded   {figures.bound}, {figures.evicted}, {figures.records}"
    )
    print(f"  took                            {time.monotonic() - began:.0f} s")
    for problem in figures.problems:
        print(f"  PROBLEM {problem}")
    if figures.problems:
        print(f"  again: {_PROGRAM} controllers --pods {options.pods} --seed {seed}")
    return 1 if figures.problems else 0


def _replicas(options: argparse.Namespace, seed: int) -> int:
    """Run it where networks can be built and cut: in a namespace of its own."""
    from replicas.report import run
    from sully.testing.network import INSIDE, SYSTEM, NetworkError, entered

    again = [str(Path(__file__)), "replicas", "--pods", str(options.pods), "--seed", str(seed)]
    again += ["--faults", str(options.faults)]
    if INSIDE in os.environ:
        code = run(options.pods, options.faults, seed, options.figures)
        if code:
            print(f"  again: python {' '.join(again)}")
        return code
    if options.figures:
        again += ["--figures", str(options.figures.absolute())]
    tools = ROOT / ".cache" / "iproute2"
    try:
        subprocess.run([ROOT / "tools" / "fetch-iproute2", tools], check=True)
        command, environment = entered([sys.executable, *again], paths=(*SYSTEM, str(tools)))
    except (NetworkError, subprocess.CalledProcessError) as error:
        print(f"  PROBLEM {error}")
        return 1
    return subprocess.run(command, env=environment, check=False).returncode


def _inputs(options: argparse.Namespace, seed: int) -> int:
    """Run the tests of hostile input with more examples; pytest shows the progress."""
    numbers = {"SULLY_FUZZ_EXAMPLES": str(options.examples), "SULLY_FUZZ_SEED": str(seed)}
    return _tests("inputs", seed, numbers, str(ROOT / "tests" / "robust" / "inputs"))


def _properties(options: argparse.Namespace, seed: int) -> int:  # noqa: ARG001 - every part is called alike
    """Run every property with all its examples, of which `make test` tries some."""
    return _tests("properties", seed, {"SULLY_EXAMPLES": "all"}, "-m", "hypothesis")


def _clients(options: argparse.Namespace, seed: int) -> int:  # noqa: ARG001 - every part is called alike
    """Run the sessions with every kubectl there is, of which `make test` takes some."""
    sessions = str(ROOT / "tests" / "e2e" / "test_kubectl_sessions.py")
    return _tests("clients", seed, {"SULLY_EXAMPLES": "all"}, sessions)


def _tests(part: str, seed: int, environment: dict[str, str], *arguments: str) -> int:
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    command += ["-p", "no:cacheprovider", f"--hypothesis-seed={seed}", "--durations=10"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=False)
    if done.returncode:
        print(f"  again: {_PROGRAM} {part} --seed {seed}")
    return 1 if done.returncode else 0


def _hostile(options: argparse.Namespace, seed: int) -> int:  # noqa: ARG001 - every part is called alike
    from hostile.report import run

    return run()


def _leaks(options: argparse.Namespace, seed: int) -> int:  # noqa: ARG001 - every part is called alike
    from leaks.rounds import Sample, leaks, run

    def progress(sample: Sample) -> None:
        print(
            f"  {sample.pods:7} pods  {sample.memory:6.0f} MiB  {sample.descriptors:4} descriptors"
            f"  {sample.threads:3} threads  {sample.tasks:4} tasks  {sample.objects:6} objects"
            f"  {sample.records:4} records of {sample.evicted} evictions",
            flush=True,
        )

    with tempfile.TemporaryDirectory(prefix="sully-robust-") as folder:
        samples = asyncio.run(run(Path(folder) / "data", options.leak_pods, progress))
    problems = list(leaks(samples))
    for problem in problems:
        print(f"  PROBLEM {problem}")
    return 1 if problems else 0


def _atheris(options: argparse.Namespace, seed: int) -> int:
    from coverage_fuzzing import run

    return run(options.fuzz_seconds, seed)


OPTIONAL = "atheris"
PARTS = {
    "crashes": _crashes,
    "faults": _faults,
    "controllers": _controllers,
    "replicas": _replicas,
    "inputs": _inputs,
    "hostile": _hostile,
    "leaks": _leaks,
    "properties": _properties,
    "clients": _clients,
    OPTIONAL: _atheris,
}

if __name__ == "__main__":
    sys.exit(main())
