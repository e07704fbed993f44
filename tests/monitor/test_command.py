"""`sully monitor`: what its flags refuse, and what it prints once."""

import pynvml
import pytest
import yaml

from monitor.gpus import fresh_pynvml, stated
from sully.cli.main import main

WRONG = {
    "another library": (("rocm",), 'unknown value "rocm" (one of: nvml)'),
    "an XID without a class": (("nvml", "--xid", "31"), '--xid: invalid value "31"'),
    "an XID of another class": (("nvml", "--xid", "31=fata"), '(did you mean "fatal"?)'),
    "a report that is never valid": (("nvml", "--stale-after", "1s"), "between 4s and 24h"),
    "measuring without a pause": (("nvml", "--interval", "0s"), "greater than 0s"),
}


@pytest.mark.parametrize(("arguments", "want"), WRONG.values(), ids=WRONG.keys())
def test_refused(arguments: tuple[str, ...], want: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", *arguments]) == 2
    assert want in capsys.readouterr().err


def test_once(capsys: pytest.CaptureFixture[str]) -> None:
    library = stated()
    library.answer("nvmlDeviceGetRemappedRows", 0, 0, 1, 1, 0)
    with fresh_pynvml():
        pynvml.nvmlLib = library
        assert main(["monitor", "nvml", "--once", "--node-name", "n1"]) == 0

    report = yaml.safe_load(capsys.readouterr().out)
    assert (report["kind"], report["metadata"]) == ("DeviceHealth", {"name": "n1"})
    assert report["spec"]["overallStatus"] == "Degraded"
    assert report["spec"]["devices"][0]["reasons"][0]["key"] == "row-remapping-pending"


def test_without_a_driver(capsys: pytest.CaptureFixture[str]) -> None:
    library = stated()
    library.answer("nvmlInitWithFlags", 9)
    with fresh_pynvml():
        pynvml.nvmlLib = library
        assert main(["monitor", "nvml", "--once"]) == 1

    assert capsys.readouterr().err == "error: cannot measure with NVML: Driver Not Loaded\n"
