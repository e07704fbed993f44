"""NVML: the calls, and nothing else. What the values mean is `domain/health/gpus.py`.

Calls may block as long as the driver does, so agent.py makes them in threads. The binding of
NVIDIA is imported when a library is opened: only nodes with GPUs need it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import msgspec

from sully.domain.health.samples import DOUBLE_BIT, XID, Event, Gpu, Sample

MISSING_BINDING = "the Python package nvidia-ml-py is not installed (pip install 'sully[monitor]')"
_ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
}


class NvmlError(Exception):
    """NVML cannot be used, or does not answer for any GPU."""


class LostError(Exception):
    """A GPU does not answer any more."""


class Nvml(msgspec.Struct):
    """An open library; `Nvml.open` opens it."""

    binding: Any
    driver_version: str = ""
    _gpus: list[tuple[Any, Gpu]] = msgspec.field(default_factory=list)
    _events: Any = None

    @classmethod
    def open(cls, library: str | Any = "") -> Nvml:
        """Load the library (or the one at this path) and find the GPUs."""
        try:
            import pynvml
        except ImportError as error:
            raise NvmlError(MISSING_BINDING) from error

        nvml = cls(pynvml)
        try:
            if library:
                pynvml.nvmlLib = ctypes.CDLL(library) if isinstance(library, str) else library
            pynvml.nvmlInit()
            nvml._start()
        except OSError as error:
            raise NvmlError(str(error)) from error
        except pynvml.NVMLError as error:
            raise NvmlError(str(error)) from error
        return nvml

    def _start(self) -> None:
        library = self.binding
        self.driver_version = _text(library.nvmlSystemGetDriverVersion())
        for index in range(library.nvmlDeviceGetCount()):
            try:
                handle = library.nvmlDeviceGetHandleByIndex(index)
                self._gpus.append((handle, self._gpu(handle, index)))
            except library.NVMLError as error:
                # One that is already lost has no identity; it is missing among those known before.
                if not self._is_lost(error):
                    raise
        self._events = self._register()

    def _register(self) -> Any:
        library = self.binding
        desired = library.nvmlEventTypeXidCriticalError | library.nvmlEventTypeDoubleBitEccError
        events = library.nvmlEventSetCreate()
        for handle, _ in self._gpus:
            supported = self._query(library.nvmlDeviceGetSupportedEventTypes, handle) or 0
            if types := desired & supported:
                self._query(library.nvmlDeviceRegisterEvents, handle, types, events)
        return events

    def close(self) -> None:
        """Release the library; what it still returns does not matter."""
        self._gpus.clear()
        for release, arguments in (
            (self.binding.nvmlEventSetFree, (self._events,)),
            (self.binding.nvmlShutdown, ()),
        ):
            try:
                release(*arguments)
            except self.binding.NVMLError:
                continue

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """Return the GPUs that were there when the library was opened."""
        return tuple(gpu for _, gpu in self._gpus)

    # -- measuring --------------------------------------------------------------------------------

    def read(self) -> tuple[Sample, ...]:
        """Return a sample of each GPU that was there when the library was opened."""
        return tuple(self._sample(handle, gpu) for handle, gpu in self._gpus)

    def _sample(self, handle: Any, gpu: Gpu) -> Sample:
        try:
            return Sample(
                gpu=gpu,
                **self._memory(handle),
                **self._clocks(handle),
                **self._pcie(handle),
                **self._fabric(handle),
                **self._fields(handle),
            )
        except LostError as error:
            return Sample(gpu=gpu, lost=str(error))

    def _gpu(self, handle: Any, index: int) -> Gpu:
        library, query = self.binding, self._query
        memory = query(library.nvmlDeviceGetMemoryInfo, handle)
        return Gpu(
            uuid=_text(library.nvmlDeviceGetUUID(handle)),
            index=index,
            pci_address=_text(library.nvmlDeviceGetPciInfo(handle).busId),
            model=_text(library.nvmlDeviceGetName(handle)),
            serial=_text(query(library.nvmlDeviceGetSerial, handle) or ""),
            architecture=_ARCHITECTURES.get(query(library.nvmlDeviceGetArchitecture, handle), ""),
            compute_capability=query(library.nvmlDeviceGetCudaComputeCapability, handle),
            memory_bytes=None if memory is None else int(memory.total),
        )

    def _memory(self, handle: Any) -> dict[str, Any]:
        library = self.binding
        corrected = library.NVML_MEMORY_ERROR_TYPE_CORRECTED
        uncorrected = library.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
        volatile, aggregate = library.NVML_VOLATILE_ECC, library.NVML_AGGREGATE_ECC

        def errors(kind: int, since: int) -> Any:
            return self._query(library.nvmlDeviceGetTotalEccErrors, handle, kind, since)

        rows = self._query(library.nvmlDeviceGetRemappedRows, handle)
        return {
            "volatile_uncorrected": errors(uncorrected, volatile),
            "volatile_corrected": errors(corrected, volatile),
            "aggregate_uncorrected": errors(uncorrected, aggregate),
            "aggregate_corrected": errors(corrected, aggregate),
            "remapping_pending": None if rows is None else bool(rows[2]),
            "remapping_failed": None if rows is None else bool(rows[3]),
        }

    def _clocks(self, handle: Any) -> dict[str, Any]:
        library = self.binding
        reasons = self._query(library.nvmlDeviceGetCurrentClocksEventReasons, handle)
        if reasons is None:
            # The name of older drivers.
            reasons = self._query(library.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        sensor = library.NVML_TEMPERATURE_GPU
        temperature = self._query(library.nvmlDeviceGetTemperature, handle, sensor)
        return {"clock_reasons": reasons, "temperature": temperature}

    def _pcie(self, handle: Any) -> dict[str, Any]:
        library = self.binding
        return {
            "pcie_replays": self._query(library.nvmlDeviceGetPcieReplayCounter, handle),
            "pcie_width": self._query(library.nvmlDeviceGetCurrPcieLinkWidth, handle),
            "pcie_max_width": self._query(library.nvmlDeviceGetMaxPcieLinkWidth, handle),
        }

    def _fabric(self, handle: Any) -> dict[str, Any]:
        library, links = self.binding, []
        for link in range(library.NVML_NVLINK_MAX_LINKS):
            state = self._query(library.nvmlDeviceGetNvLinkState, handle, link)
            if state is None:
                break
            links.append(bool(state))
        fields: dict[str, Any] = {"nvlinks": tuple(links)}
        info = library.c_nvmlGpuFabricInfo_v2_t()
        by_reference = ctypes.byref(info)
        if self._query(library.nvmlDeviceGetGpuFabricInfoV, handle, by_reference) is not None:
            fields["fabric_state"] = int(info.state)
            fields["fabric_status"] = int(info.status)
            fields["fabric_health"] = int(info.healthMask)
        return fields

    def _fields(self, handle: Any) -> dict[str, Any]:
        library = self.binding
        fields = {
            library.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL: "crc",
            library.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL: "replays",
            library.NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL: "nvlink_recoveries",
            library.NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR: "pcie_fatal_errors",
            library.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION: "recovery_action",
        }
        values: dict[str, Any] = {}
        for answer in self._query(library.nvmlDeviceGetFieldValues, handle, list(fields)) or ():
            if answer.nvmlReturn == library.NVML_SUCCESS:
                values[fields[answer.fieldId]] = _number(library, answer)
        corrected = [values.pop(name) for name in ("crc", "replays") if name in values]
        return {**values, "nvlink_errors": sum(corrected) if corrected else None}

    # -- events -----------------------------------------------------------------------------------

    def wait(self, milliseconds: int) -> Event | None:
        """Return the next event; None if there was none in this time."""
        library = self.binding
        try:
            data = library.nvmlEventSetWait_v2(self._events, milliseconds)
        except library.NVMLError as error:
            if error.value == library.NVML_ERROR_TIMEOUT:
                return None
            raise NvmlError(str(error)) from error
        kinds = {
            library.nvmlEventTypeXidCriticalError: XID,
            library.nvmlEventTypeDoubleBitEccError: DOUBLE_BIT,
        }
        kind = kinds.get(data.eventType)
        return None if kind is None else Event(self._uuid(data.device), kind, data.eventData)

    def _uuid(self, device: Any) -> str:
        address = ctypes.cast(device, ctypes.c_void_p).value
        for handle, gpu in self._gpus:
            if ctypes.cast(handle, ctypes.c_void_p).value == address:
                return gpu.uuid
        return ""

    # -- errors -----------------------------------------------------------------------------------

    def _query(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the answer of a call; None if the GPU or its driver does not have it."""
        try:
            return function(*arguments)
        except self.binding.NVMLError as error:
            if self._is_lost(error):
                raise LostError(str(error)) from error
            if error.value in (
                self.binding.NVML_ERROR_UNINITIALIZED,
                self.binding.NVML_ERROR_DRIVER_NOT_LOADED,
                self.binding.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
            ):
                raise NvmlError(str(error)) from error
            return None

    def _is_lost(self, error: Any) -> bool:
        library = self.binding
        return error.value in (library.NVML_ERROR_GPU_IS_LOST, library.NVML_ERROR_RESET_REQUIRED)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _number(library: Any, answer: Any) -> int:
    """Return the value of a field, which is a union."""
    match answer.valueType:
        case library.NVML_VALUE_TYPE_DOUBLE:
            return int(answer.value.dVal)
        case library.NVML_VALUE_TYPE_UNSIGNED_INT | library.NVML_VALUE_TYPE_SIGNED_INT:
            return int(answer.value.uiVal)
        case _:
            return int(answer.value.ullVal)
