"""A library with the C interface of NVML that answers what real hardware has answered.

    library = FakeNvml.replay(json.loads(path.read_text()), gpus=8)
    nvml = Nvml.open(library)
    library.phase = "load"                                    # as tools/record_nvml.py names them
    library.answer("nvmlDeviceGetRemappedRows", 0, 1, 0, 1, gpu=3)
    library.deliver(xid=79, gpu=3)

Its functions are pointers to C functions: pynvml calls them as those of the real library, with its
own structures, and they write what was recorded into its memory, byte for byte. What hardware does
only when it breaks is answered by what a test states.
"""

from __future__ import annotations

import ctypes
import json
import queue
import struct
import threading
from collections.abc import Mapping
from typing import Any

SUCCESS, NOT_SUPPORTED, TIMEOUT, GPU_IS_LOST = 0, 3, 10, 15
_TYPES: Mapping[str, Any] = {
    "p": ctypes.c_void_p,
    "h": ctypes.c_void_p,
    "I": ctypes.c_uint,
    "i": ctypes.c_int,
    "Q": ctypes.c_ulonglong,
}
SIGNATURES: Mapping[str, str] = {
    "nvmlInitWithFlags": "i",
    "nvmlShutdown": "",
    "nvmlSystemGetDriverVersion": "pI",
    "nvmlDeviceGetCount_v2": "p",
    "nvmlDeviceGetHandleByIndex_v2": "Ip",
    "nvmlDeviceGetUUID": "hpI",
    "nvmlDeviceGetPciInfo_v3": "hp",
    "nvmlDeviceGetName": "hpI",
    "nvmlDeviceGetSerial": "hpI",
    "nvmlDeviceGetArchitecture": "hp",
    "nvmlDeviceGetCudaComputeCapability": "hpp",
    "nvmlDeviceGetMemoryInfo": "hp",
    "nvmlDeviceGetTotalEccErrors": "hIIp",
    "nvmlDeviceGetRemappedRows": "hpppp",
    "nvmlDeviceGetCurrentClocksEventReasons": "hp",
    "nvmlDeviceGetCurrentClocksThrottleReasons": "hp",
    "nvmlDeviceGetTemperature": "hIp",
    "nvmlDeviceGetPcieReplayCounter": "hp",
    "nvmlDeviceGetCurrPcieLinkWidth": "hp",
    "nvmlDeviceGetMaxPcieLinkWidth": "hp",
    "nvmlDeviceGetNvLinkState": "hip",
    "nvmlDeviceGetGpuFabricInfoV": "hp",
    "nvmlDeviceGetFieldValues": "hip",
    "nvmlDeviceGetSupportedEventTypes": "hp",
    "nvmlDeviceRegisterEvents": "hQh",
    "nvmlEventSetCreate": "p",
    "nvmlEventSetWait_v2": "hpI",
    "nvmlEventSetFree": "h",
}
"""The functions that the monitor calls: handles, pointers and numbers that each takes."""
_XID = 0x8
_WAIT = "nvmlEventSetWait_v2"
_STATIC = "start"
"""The phase in which the library was opened, whose answers hold in all others."""
Outs = tuple[bytes, ...]


class FakeNvml:
    """The library; `phase` selects what of the recording it answers."""

    def __init__(self, *, gpus: int = 1) -> None:
        self.phase = _STATIC
        self.gpus = gpus
        self._handle = 0x1000
        self._phases: dict[str, dict[Any, list[tuple[int, Outs]]]] = {}
        self._positions: dict[Any, int] = {}
        self._stated: dict[tuple[str, int | None], tuple[int, tuple[Any, ...]]] = {}
        self._events: queue.Queue[bytes | int] = queue.Queue()
        self._functions: dict[str, Any] = {}
        self._blocked: dict[str, threading.Event] = {}

    @classmethod
    def replay(cls, recording: Mapping[str, Any], *, gpus: int = 1) -> FakeNvml:
        """Return a library that answers what was recorded; further GPUs are like the first."""
        library = cls(gpus=gpus)
        for phase, calls in recording["phases"].items():
            answers = library._phases.setdefault(phase, {})
            for call, recorded in calls.items():
                name, arguments = json.loads(call)
                key = (name, *(tuple(part) for part in arguments))
                outs = [(code, tuple(map(bytes.fromhex, out))) for code, out, *_ in recorded]
                answers[_plain(key)] = outs
                if name == "nvmlDeviceGetHandleByIndex_v2":
                    library._handle = int.from_bytes(outs[0][1][1], "little")
        library.phase = "idle"
        return library

    # -- what a test states -----------------------------------------------------------------------

    def answer(self, name: str, code: int, *values: Any, gpu: int | None = None) -> None:
        """Answer a function with this code and values; `gpu` limits it to one."""
        self._stated[name, gpu] = (code, values)

    def lose(self, gpu: int) -> None:
        """Let a GPU answer no call any more."""
        for name, types in SIGNATURES.items():
            if types.startswith("h") and name.startswith("nvmlDevice"):
                self.answer(name, GPU_IS_LOST, gpu=gpu)

    def recover(self, gpu: int) -> None:
        """Let a GPU answer again, as before it was lost."""
        self._stated = {key: value for key, value in self._stated.items() if key[1] != gpu}

    def block(self, name: str, until: threading.Event) -> None:
        """Let a function return only when the event is set, as a driver that hangs."""
        self._blocked[name] = until

    def deliver(self, *, xid: int, gpu: int = 0) -> None:
        """Report an XID."""
        self._events.put(struct.pack("<QQQII", self._handle_of(gpu), _XID, xid, 0, 0))

    def happen(self, phase: str) -> None:
        """Go on to a phase, and report the events that were recorded in it."""
        self.phase = phase
        for key, answers in self._phases.get(phase, {}).items():
            if key[0] == _WAIT:
                for _, outs in answers:
                    self._events.put(outs[1])

    def fail_events(self, code: int) -> None:
        """Let the next wait for an event fail."""
        self._events.put(code)

    # -- the C interface --------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        types = SIGNATURES.get(name)
        if types is None:
            raise AttributeError(name)
        if name not in self._functions:
            prototype = ctypes.CFUNCTYPE(ctypes.c_int, *(_TYPES[kind] for kind in types))
            self._functions[name] = prototype(lambda *arguments: self._call(name, types, arguments))
        return self._functions[name]

    def _call(self, name: str, types: str, arguments: tuple[Any, ...]) -> int:
        if name == _WAIT:
            return self._wait(arguments[1], arguments[2])
        if name in self._blocked:
            self._blocked[name].wait()
        gpu = self._gpu(arguments[0]) if types.startswith("h") else None
        for key in ((name, gpu), (name, None)):
            if key in self._stated:
                code, values = self._stated[key]
                owned = (_own(name, x, gpu) if isinstance(x, bytes) else x for x in values)
                _write(types, arguments, tuple(owned))
                return code
        if name == "nvmlDeviceGetCount_v2":
            ctypes.c_uint.from_address(arguments[0]).value = self.gpus
            return SUCCESS
        if name == "nvmlDeviceGetHandleByIndex_v2":
            ctypes.c_void_p.from_address(arguments[1]).value = self._handle_of(arguments[0])
            return SUCCESS
        return self._replay(name, types, arguments, gpu)

    def _wait(self, data: int, milliseconds: int) -> int:
        try:
            event = self._events.get(timeout=milliseconds / 1000)
        except queue.Empty:
            return TIMEOUT
        if isinstance(event, int):
            return event
        ctypes.memmove(data, event, len(event))
        return SUCCESS

    def _replay(self, name: str, types: str, arguments: tuple[Any, ...], gpu: int | None) -> int:
        for phase in (self.phase, _STATIC, *self._phases):
            for key, answers in self._phases.get(phase, {}).items():
                if key[0] != name or not _matches(key[1:], types, arguments):
                    continue
                position = self._positions.get((phase, key, gpu), 0)
                self._positions[phase, key, gpu] = position + 1
                code, outs = answers[min(position, len(answers) - 1)]
                for kind, address, out in zip(types, arguments, outs, strict=True):
                    if kind == "p":
                        ctypes.memmove(address, _own(name, out, gpu), len(out))
                return code
        return SUCCESS if not types or types == "i" or "Event" in name else NOT_SUPPORTED

    def _handle_of(self, gpu: int) -> int:
        return self._handle + 0x10 * gpu

    def _gpu(self, handle: int | None) -> int | None:
        gpu, rest = divmod((handle or 0) - self._handle, 0x10)
        return gpu if rest == 0 and 0 <= gpu < self.gpus else None


def _plain(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Leave handles out of a recorded call: all GPUs are like the one that was recorded."""
    return (key[0], *(("h", 0) if part[0] == "h" else part for part in key[1:]))


def _matches(recorded: tuple[Any, ...], types: str, arguments: tuple[Any, ...]) -> bool:
    if len(recorded) != len(types):
        return False
    # Numbers first: they define how much memory a pointer points to.
    pairs = sorted(zip(types, recorded, arguments, strict=True), key=lambda pair: pair[0] == "p")
    for kind, (_, value), argument in pairs:
        if kind == "p":
            before = bytes.fromhex(value)
            if ctypes.string_at(argument, len(before)) != before:
                return False
        elif kind != "h" and value != argument:
            return False
    return True


def _own(name: str, out: bytes, gpu: int | None) -> bytes:
    """Give each GPU an identity of its own, beside the one that was recorded."""
    if not gpu:
        return out
    text = out.rstrip(b"\0")
    if name == "nvmlDeviceGetUUID":
        return (text[:-2] + b"%02x" % gpu).ljust(len(out), b"\0")
    if name == "nvmlDeviceGetSerial":
        return (text[:-2] + b"%02d" % gpu).ljust(len(out), b"\0")
    if name == "nvmlDeviceGetPciInfo_v3":
        domain, _, device = text[-16:].split(b":")
        return out[: len(text) - 16] + b"%s:%02X:%s" % (domain, 0x40 + gpu, device) + b"\0" * 4
    return out


def _write(types: str, arguments: tuple[Any, ...], values: tuple[Any, ...]) -> None:
    """Write values to where the pointers among the arguments point, in order."""
    pointers = [address for kind, address in zip(types, arguments, strict=True) if kind == "p"]
    for address, value in zip(pointers, values, strict=False):
        if isinstance(value, int):
            ctypes.c_uint.from_address(address).value = value
        else:
            ctypes.memmove(address, value, len(value))
