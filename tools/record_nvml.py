"""Records what NVML answers on a node with a GPU: idle, under load, and when kernels fail.

The tests replay the recording through the C interface of the library (`sully.testing.nvml`), so
the monitor meets in every run what real hardware answered. It makes the calls of the monitor
itself, and needs only Python, `pynvml` and the driver; PyTorch for the load if there is one.

    python3 tools/record_nvml.py FOLDER [--seconds 30]

It writes FOLDER/nvml.json and FOLDER/nvml.log. The recording has serial numbers; replace them
before it is shared (`--anonymous` does).
"""

import argparse
import ctypes
import json
import os
import platform
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "src")]

from sully.monitor.nvml import Nvml  # noqa: E402 -- runs without an installation

Arg = list[Any]
MOST = 12
"""How many answers of one call a phase keeps."""
FAULTS = {
    # What the driver reports as XID 31: the page is not mapped.
    "illegal-address": "mov.u64 %rd1, 16; mov.u32 %r1, 1; st.global.u32 [%rd1], %r1;",
    # XID 13: an exception of a multiprocessor.
    "misaligned-address": "ld.param.u64 %rd1, [memory]; add.u64 %rd1, %rd1, 1; mov.u32 %r1, 1;"
    " st.global.u32 [%rd1], %r1;",
}
_PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry fault(.param .u64 memory)
{{
  .reg .u64 %rd<2>;
  .reg .u32 %r<2>;
  {body}
  ret;
}}
"""
_LOAD = """
import sys, time, torch
a = torch.randn(12288, 12288, device="cuda", dtype=torch.bfloat16)
b = torch.randn(12288, 12288, device="cuda", dtype=torch.bfloat16)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in range(20):
        c = a @ b
    torch.cuda.synchronize()
"""


# -- recording ------------------------------------------------------------------------------------


class Recorder:
    """A library that passes calls on and records them, by phase."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.phase = "start"
        self.calls: dict[str, dict[str, list[Any]]] = {}
        self.started = time.monotonic()
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> "Function":
        return Function(self, name, getattr(self.library, name))

    def keep(self, name: str, given: list[Arg], outs: list[str], code: int) -> None:
        """Record the response to one call."""
        with self._lock:
            answers = self.calls.setdefault(self.phase, {}).setdefault(
                json.dumps([name, given]), []
            )
            if name == "nvmlEventSetWait_v2" and code == 0:
                answers.append([code, outs, round(time.monotonic() - self.started, 3)])
            elif len(answers) < MOST and name != "nvmlEventSetWait_v2":
                answers.append([code, outs])


class Function:
    """One function of the library."""

    def __init__(self, recorder: Recorder, name: str, real: Any) -> None:
        self._recorder, self._name, self._real = recorder, name, real

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            # pynvml sets the type of the result.
            setattr(self._real, name, value)
        super().__setattr__(name, value)

    def __call__(self, *arguments: Any) -> Any:
        given = [_given(argument) for argument in arguments]
        code = self._real(*arguments)
        outs = ["" if (held := _held(x)) is None else bytes(held).hex() for x in arguments]
        if isinstance(code, int):
            self._recorder.keep(self._name, given, outs, code)
        return code


def _held(argument: Any) -> Any:
    """Return the memory that an argument points to; None if it is a value."""
    if hasattr(argument, "_obj"):
        return argument._obj
    return argument if isinstance(argument, ctypes.Array) else None


def _given(argument: Any) -> Arg:
    """Return an argument as its type in C and its value: `p` with what is in the memory."""
    held = _held(argument)
    if held is not None:
        return ["p", bytes(held).hex()]
    if isinstance(argument, int):
        return ["i", argument]
    if isinstance(argument, ctypes._Pointer):
        return ["h", ctypes.cast(argument, ctypes.c_void_p).value or 0]
    return [argument._type_, argument.value]


# -- what happens on the GPU ----------------------------------------------------------------------


def fault(body: str) -> int:
    """Run a kernel that fails, in this process; return the driver's error."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    function, memory = ctypes.c_void_p(), ctypes.c_uint64()
    _check(cuda.cuInit(0), "cuInit")
    _check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    _check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    _check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    text = _PTX.format(body=body).encode()
    _check(cuda.cuModuleLoadData(ctypes.byref(module), text), "cuModuleLoadData")
    _check(
        cuda.cuModuleGetFunction(ctypes.byref(function), module, b"fault"), "cuModuleGetFunction"
    )
    _check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096)), "cuMemAlloc")
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    _check(
        cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, parameters, None), "cuLaunchKernel"
    )
    return int(cuda.cuCtxSynchronize())


def _check(code: int, call: str) -> None:
    if code:
        raise SystemExit(f"{call}: error {code}")


@contextmanager
def program(*command: str) -> Iterator[subprocess.Popen[str]]:
    """Run another program beside the recording."""
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


# -- phases ---------------------------------------------------------------------------------------


class Recording:
    """The phases, one after the other."""

    def __init__(self, recorder: Recorder, nvml: Nvml, log: Callable[..., None]) -> None:
        self.recorder, self.nvml, self.log = recorder, nvml, log
        self.events: list[dict[str, Any]] = []
        self.notes: dict[str, Any] = {}

    def sample(self, times: int, *, every: float) -> None:
        """Read the GPU several times, and log the last answer."""
        for _ in range(times):
            found = self.nvml.read()
            time.sleep(every)
        self.log(self.recorder.phase, *found)

    def idle(self, seconds: float) -> None:
        """Measure what reading costs while nothing happens: every second, as the agent may."""
        self.recorder.phase = "idle"
        before, started, reads = _cpu(), time.monotonic(), 0
        while time.monotonic() - started < seconds:
            found = self.nvml.read()
            reads += 1
            time.sleep(1)
        lasted = time.monotonic() - started
        self.notes["idle"] = {
            "seconds": round(lasted, 1),
            "reads": reads,
            "cpu_seconds": round(_cpu() - before, 4),
            "cpu_percent": round(100 * (_cpu() - before) / lasted, 3),
            "max_rss_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        }
        self.log("idle", self.notes["idle"], *found)

    def load(self, seconds: float) -> None:
        """Heat the GPU."""
        self.recorder.phase = "load"
        with program("-c", _LOAD, str(seconds + 15)) as process:
            # Until the kernels run.
            end = time.monotonic() + 60
            while _utilization(self.nvml) < 90 and time.monotonic() < end:
                time.sleep(0.5)
            self.sample(int(seconds), every=1)
            if process.poll() is not None and process.stdout is not None:
                self.log("the load has ended", process.stdout.read()[-2000:])

    def faults(self) -> None:
        """Run kernels that fail."""
        for name in FAULTS:
            self.recorder.phase = f"fault-{name}"
            began = time.monotonic()
            with program(__file__, "--fault", name) as process:
                output = process.communicate(timeout=60)[0]
            self.log(name, "exit code", process.returncode, output)
            while time.monotonic() - began < 8:
                event = self.nvml.wait(1000)
                if event is not None:
                    after = round(time.monotonic() - began, 3)
                    self.events.append({"fault": name, "after": after, "data": event.data})
                    self.log("event", event, f"{after} s after the program was started")
            self.sample(3, every=0.5)

    def after(self) -> None:
        """Read the GPU when all is over."""
        self.recorder.phase = "after"
        time.sleep(5)
        self.sample(5, every=1)


def _utilization(nvml: Nvml) -> int:
    try:
        return int(
            nvml.binding.nvmlDeviceGetUtilizationRates(
                nvml.binding.nvmlDeviceGetHandleByIndex(0)
            ).gpu
        )
    except nvml.binding.NVMLError:
        return 100


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def record(folder: Path, seconds: float, *, anonymous: bool) -> None:
    """Record all phases into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "nvml.log").open("w") as file:

        def log(*parts: Any) -> None:
            for stream in (sys.stdout, file):
                print(*parts, file=stream, flush=True)

        recorder = Recorder(ctypes.CDLL("libnvidia-ml.so.1"))
        nvml = Nvml.open(recorder)
        recording = Recording(recorder, nvml, log)
        log("driver", nvml.driver_version, "GPUs", *nvml.gpus)
        phases: tuple[Callable[[], None], ...] = (
            lambda: recording.idle(seconds),
            lambda: recording.load(seconds),
            recording.faults,
            recording.after,
        )
        for phase in phases:
            try:
                phase()
            except Exception as error:  # noqa: BLE001 -- what the other phases record still counts
                log("FAILED", recorder.phase, repr(error))
        _kernel_log(log)
        recorder.phase = "end"
        serial = nvml.gpus[0].serial if nvml.gpus else ""
        nvml.close()
    meta = {
        "driver": nvml.driver_version,
        "machine": platform.machine(),
        "events": recording.events,
        **recording.notes,
    }
    text = json.dumps({"meta": meta, "phases": recorder.calls}, indent=0)
    if anonymous and serial:
        text = text.replace(serial.encode().hex(), ("0" * len(serial)).encode().hex())
    (folder / "nvml.json").write_text(text)


def _kernel_log(log: Callable[..., None]) -> None:
    done = subprocess.run(["dmesg"], capture_output=True, text=True, check=False)
    log("dmesg", *[line for line in done.stdout.splitlines() if "Xid" in line][-20:])


def main() -> int:
    """Record, or run one kernel that fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seconds", type=float, default=30, help="of the phases idle and load")
    parser.add_argument("--anonymous", action="store_true", help="replace the serial number")
    parser.add_argument("--fault", choices=FAULTS, help="only run this kernel")
    options = parser.parse_args()
    if options.fault:
        print("cuCtxSynchronize:", fault(FAULTS[options.fault]), flush=True)
        # The context is broken: leave without the driver's cleanup.
        os._exit(0)
    record(options.folder or Path("."), options.seconds, anonymous=options.anonymous)
    return 0


if __name__ == "__main__":
    sys.exit(main())
