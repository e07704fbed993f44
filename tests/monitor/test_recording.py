"""What the recorder writes is what the fake library answers."""

import json
from typing import Any

from monitor.gpus import opened, stated
from record_nvml import Recorder
from sully.domain.health.samples import Event, Sample
from sully.testing.nvml import FakeNvml


def _recorded(library: FakeNvml) -> tuple[dict[str, Any], tuple[Sample, ...]]:
    recorder: Any = Recorder(library)  # type: ignore[arg-type]  # has the same functions
    with opened(recorder) as nvml:
        recorder.phase = "idle"
        result = nvml.read()
    return json.loads(json.dumps({"phases": recorder.calls})), result


def test_a_replay_answers_what_was_recorded() -> None:
    recording, result = _recorded(stated())

    with opened(FakeNvml.replay(recording)) as nvml:
        assert nvml.driver_version == "580.1"
        assert nvml.read() == result
        assert nvml.read() == result
    assert result[0].gpu.uuid == "GPU-00000000-1111-2222-3333-444444444444"
    assert result[0].gpu.memory_bytes == 150_000_000_000
    assert (result[0].temperature, result[0].clock_reasons) == (31, 1)
    assert (result[0].remapping_failed, result[0].pcie_width) == (False, None)


def test_further_gpus_are_like_the_first_with_identities_of_their_own() -> None:
    recording, _ = _recorded(stated())

    with opened(FakeNvml.replay(recording, gpus=3)) as nvml:
        gpus = [sample.gpu for sample in nvml.read()]
    assert [gpu.index for gpu in gpus] == [0, 1, 2]
    assert len({gpu.uuid for gpu in gpus}) == 3
    assert len({gpu.serial for gpu in gpus}) == 3
    assert [gpu.pci_address for gpu in gpus[1:]] == ["00000000:41:00.0", "00000000:42:00.0"]
    assert {gpu.model for gpu in gpus} == {"NVIDIA H200"}


def test_events_and_a_lost_gpu() -> None:
    library = stated(gpus=2)
    with opened(library) as nvml:
        assert nvml.wait(0) is None
        library.deliver(xid=79, gpu=1)
        library.answer("nvmlDeviceGetRemappedRows", 0, 0, 0, 1, 1, gpu=0)
        library.lose(1)
        first, second = nvml.read()

        assert nvml.wait(0) == Event(second.gpu.uuid, "xid", 79)
        assert first.remapping_pending
        assert not first.lost
        assert second.lost == "GPU is lost"
