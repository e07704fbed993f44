"""GPUs for tests: what an H200 has answered, and a library that answers it."""

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pynvml

from sully.monitor.nvml import Nvml
from sully.testing.nvml import FakeNvml


def stated(gpus: int = 1) -> FakeNvml:
    """Return a library of which everything is stated: a GPU as the documentation describes it."""
    library = FakeNvml(gpus=gpus)
    library.answer("nvmlSystemGetDriverVersion", 0, b"580.1\0")
    library.answer("nvmlDeviceGetUUID", 0, b"GPU-00000000-1111-2222-3333-444444444444\0")
    pci = b"\0" * 16 + struct.pack("<IIIII", 0, 0x3B, 0, 0, 0) + b"00000000:3B:00.0\0"
    library.answer("nvmlDeviceGetPciInfo_v3", 0, pci)
    library.answer("nvmlDeviceGetName", 0, b"NVIDIA H200\0")
    library.answer("nvmlDeviceGetSerial", 0, b"1650000000000\0")
    library.answer("nvmlDeviceGetArchitecture", 0, 9)
    library.answer("nvmlDeviceGetCudaComputeCapability", 0, 9, 0)
    library.answer("nvmlDeviceGetMemoryInfo", 0, struct.pack("<QQQ", 150_000_000_000, 1, 1))
    library.answer("nvmlDeviceGetTotalEccErrors", 0, 0)
    library.answer("nvmlDeviceGetRemappedRows", 0, 0, 0, 0, 0)
    library.answer("nvmlDeviceGetCurrentClocksEventReasons", 0, 1)
    library.answer("nvmlDeviceGetTemperature", 0, 31)
    library.answer("nvmlDeviceGetSupportedEventTypes", 0, 0x1F)
    return library


@contextmanager
def fresh_pynvml() -> Iterator[None]:
    """Let pynvml forget the functions of another library, before and after."""
    pynvml._nvmlGetFunctionPointer_cache.clear()
    try:
        yield
    finally:
        pynvml._nvmlGetFunctionPointer_cache.clear()
        pynvml.nvmlLib = None


@contextmanager
def opened(library: object) -> Iterator[Nvml]:
    """Open a library."""
    with fresh_pynvml():
        nvml = Nvml.open(library)
        try:
            yield nvml
        finally:
            nvml.close()


def recorded(gpus: int = 1) -> FakeNvml:
    """Return a library that answers what an H200 has answered."""
    path = Path(__file__).parent / "recorded" / "h200.json"
    return FakeNvml.replay(json.loads(path.read_text()), gpus=gpus)
