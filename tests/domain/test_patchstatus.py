"""The status of a patch."""

import pytest

from sully.domain.devices.patch_status import PatchReport, report
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.rules import NO, YES, Choice
from sully.domain.eviction.status import Report

NONE = Report("False", "NoDevice", "No published device is selected.")
OWN = Choice(selected=False, problem="selector #0: runtime error: no such key: x", own=True)
CLASS = Choice(selected=False, problem="there is no class c")


def failed(text: str) -> Report:
    return Report("True", "SelectorFailed", text)


CASES: dict[str, tuple[list[Choice], PatchReport]] = {
    "no devices": ([], PatchReport(NONE, None, frozenset())),
    "none selected": ([NO, NO], PatchReport(NONE, None, frozenset())),
    "one": (
        [NO, YES],
        PatchReport(Report("True", "Applied", "Changes 1 device."), None, frozenset()),
    ),
    "several": (
        [YES, YES, YES],
        PatchReport(Report("True", "Applied", "Changes 3 devices."), None, frozenset()),
    ),
    "an expression fails": (
        [YES, OWN, OWN],
        PatchReport(
            Report("True", "Applied", "Changes 1 device."),
            failed(f"2 devices not selected because of errors: d/p/gpu-1: {OWN.problem}"),
            frozenset({OWN.problem}),
        ),
    ),
    "the class is missing": (
        [CLASS],
        PatchReport(
            NONE,
            failed(f"1 device not selected because of errors: d/p/gpu-0: {CLASS.problem}"),
            frozenset(),
        ),
    ),
}


@pytest.mark.parametrize(("choices", "want"), CASES.values(), ids=CASES.keys())
def test_report(choices: list[Choice], want: PatchReport) -> None:
    devices = [DeviceId("d", "p", f"gpu-{index}") for index in range(len(choices))]

    assert report(zip(devices, choices, strict=True)) == want
