"""docs/reference/output.md names every field that commands print for programs, and no other."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from architecture.project import ROOT
from cli.shapes import paths, type_paths
from sully.cli.inspect.devices.printer import document
from sully.cli.main import main
from sully.client.transport import Key
from sully.domain.allocation.usage.conflicts import DeviceConflict
from sully.domain.devices.pools import DeviceId
from sully.domain.planning.report import Plan
from sully.domain.scheduling.diagnosis import Diagnosis
from sully.testing.builders import rule, select, taint
from sully.testing.clock import NOON
from sully.views.devices.device_views import DeviceView
from sully.views.evictions import EvictionProgress
from sully.views.history import HistoryEntry

PAGE = (ROOT / "docs/reference/output.md").read_text()
CLI = Path(__file__).parent.parent / "cli"
DIAGNOSIS = "evictions[].replacement.diagnosis."
COMMANDS = {
    "sully devices": ("devices", "screens"),
    "sully evictions": ("evictions", "screens"),
    "sully history": ("history", "screens"),
}
SELDOM = {
    "history[].cluster",
    "history[].endTime",
    "devices[].ignoredPatches",
    "evictions[].stale",
    "devices[].users[].tolerations[].value",
    "evictionLoops",
    "evictionLoops[].namespace",
    "evictionLoops[].owner",
    "evictionLoops[].rules",
    "evictionLoops[].evicted",
    "evictionLoops[].firstEvictionTime",
    "evictionLoops[].lastEvictionTime",
    "devices[].conflict",
    "devices[].conflict.reason",
    "devices[].conflict.claims",
    "devices[].conflict.claims[].namespace",
    "devices[].conflict.claims[].name",
    "devices[].conflict.exceededCapacity",
    "evictions[].taint.value",
    "evictions[].evictedAtLeast",
    "evictions[].terminatingPods",
    "evictions[].terminatingPods[].namespace",
    "evictions[].terminatingPods[].name",
    "evictions[].terminatingPods[].graceEndTime",
    "history[].evictedAtLeast",
    "history[].mayInclude",
    "history[].taint.value",
    "history[].causes[].value",
    "history[].deviceSelector.selectors",
}
"""Fields that the cluster of the tests has no use for; test_seldom_fields fills them."""


def documented(section: str) -> set[str]:
    """Return the fields that the page has in a section."""
    text = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (result,) = (item for item in text if item.startswith(f"{section}\n"))
    return set(re.findall(r"^\| `([^`]+)` \|", result, re.MULTILINE))


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    main([*arguments, "-o", "json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("section", "command"), COMMANDS.items(), ids=COMMANDS)
def test_fields(section: str, command: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    name, folder = command

    result = answer(capsys, name, "--snapshot", str(CLI / folder / "cluster.yaml"))

    assert set(paths(result)) == documented(section) - SELDOM


def test_fields_of_a_plan(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CLI / "plans")
    device = answer(capsys, "plan", "-f", "everything.yaml", "--snapshot", "cluster.yaml")
    fleet = answer(capsys, "plan", "cluster", "eu-2", "x:NoSelect", "--snapshot", "cluster.yaml")

    can = {path for path in type_paths(Plan) if not path.startswith(DIAGNOSIS)}
    does = {
        path for one in (device, fleet) for path in paths(one) if not path.startswith(DIAGNOSIS)
    }
    counts = {"notRescheduled", "unknown", "mayBeEvictedAgain", "unsatisfiedPlacements"}
    assert documented("sully plan") == can | counts | {"kind"}
    assert does <= documented("sully plan")


def test_fields_of_a_diagnosis() -> None:
    assert documented("A diagnosis") == set(type_paths(Diagnosis))


def test_fields_of_an_explanation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CLI / "explained")
    first = (CLI / "explained/pipe/pod-json.txt").read_text().partition("\n")[0]
    arguments = shlex.split(first.removeprefix("$ sully ").replace(" -o json", ""))

    result = answer(capsys, *arguments, "--snapshot", "cluster.yaml")

    assert set(paths(result)) == documented("sully explain")


def test_seldom_fields() -> None:
    """The page describes them as the code writes them."""
    from sully.api.resource.types import DeviceToleration
    from sully.cli.inspect.devices.printer import _toleration_document

    written = _toleration_document(DeviceToleration(key="k", operator="Equal", value="v"))

    assert set(written) == {"key", "operator", "value"}
    assert set(documented("sully devices")) >= {
        f"devices[].users[].tolerations[].{x}" for x in written
    }


def test_fields_of_a_conflict() -> None:
    conflict = DeviceConflict("CapacityExceeded", ("a/b",), ("memory",))
    view = DeviceView(DeviceId("d", "p", "x"), None, "", conflict=conflict)

    printed = {"devices": [document(view)]}

    assert {path for path in paths(printed) if ".conflict" in path} == {
        message for message in documented("sully devices") if ".conflict" in message
    }


def test_seldom_fields_of_evictions() -> None:
    from sully.cli.inspect.evictions.printer import document

    progress = EvictionProgress(
        rule=rule("r", select()),
        pending={},
        terminating={Key("ns", "p"): NOON},
        evicted=1,
        complete=False,
        devices=1,
        state="terminating",
    )
    written = set(paths({"evictions": [document(progress)]}))

    assert written <= documented("sully evictions")
    assert written >= {
        item for item in SELDOM if "terminatingPods" in item or item == "evictions[].evictedAtLeast"
    }


def test_fields_of_what_has_no_effect() -> None:
    from sully.cli.inspect.devices.printer import document as device_document
    from sully.cli.inspect.evictions.printer import document
    from sully.domain.devices.pools import DeviceId
    from sully.views.devices.device_views import DeviceView

    progress = EvictionProgress(
        rule=rule("r", select()), pending={}, terminating={}, evicted=1, devices=0, state="inactive"
    )
    view = DeviceView(DeviceId("d", "p", "n"), None, "", ignored_patches=("x",))
    written = {
        *paths({"evictions": [document(progress)]}),
        *paths({"devices": [device_document(view)]}),
    }

    assert written >= {"evictions[].stale", "devices[].ignoredPatches"}
    assert written <= documented("sully evictions") | documented("sully devices")


def test_fields_of_eviction_loops() -> None:
    from sully.cli.inspect.evictions.printer import loop_document
    from sully.domain.eviction.running_loops import RunningLoop
    from sully.views.eviction_loops import LoopWithRules

    loop = RunningLoop(
        namespace="ns",
        owner="ReplicaSet/web",
        evicted_uids=frozenset({"a", "b", "c"}),
        first=NOON,
        last=NOON,
        pods=("p",),
    )

    written = set(paths({"evictionLoops": [loop_document(LoopWithRules(loop, ("fw",)))]}))

    assert written == {item for item in SELDOM if item.startswith("evictionLoops")}


def test_seldom_fields_of_history() -> None:
    from sully.cli.inspect.history.printer import document

    entry = HistoryEntry(time=NOON, what="deleted", uncertain=True, complete=False)
    written = set(paths({"history": [document(entry)]}))

    assert {"history[].mayInclude", "history[].evictedAtLeast"} <= written
    assert written <= documented("sully history")


def test_fields_of_sources() -> None:
    from sully.cli.inspect.rules_printer import document
    from sully.views.taint_sources import TaintSource

    pod = Key("ns", "p")
    source = TaintSource(
        kind="rule",
        name="r",
        objects=("r",),
        taint=taint("NoExecute", value="v"),
        devices=frozenset({DeviceId("d", "p", "x")}),
        reason="fan",
        created_by="alice",
        since=NOON,
        expires=NOON,
        pending={pod: NOON},
        terminating=frozenset({pod}),
        evicted=1,
        complete=False,
        would_evict=frozenset({pod}),
    )

    assert set(paths({"sources": [document(source)]})) == documented("sully rules")


def test_fields_of_the_status() -> None:
    from sully.cli.inspect.status_printer import document
    from sully.views.status import DeviceTally, NodeDevices, Status

    tally = DeviceTally(tainted=Counter({"NoExecute": 1}))
    conflict = DeviceConflict("CapacityExceeded", ("a/b",), ("memory",))
    status = Status(
        total=tally,
        classes={"gpu": tally},
        nodes=(NodeDevices(node="n", tally=tally, obstacle="node cordoned"),),
        pending={Key("ns", "p"): {"gpu"}},
        unpublished=1,
        conflicts=(DeviceView(DeviceId("d", "p", "x"), None, "", conflict=conflict),),
        sources=(),
        evictions=(),
        loops=(),
        disabled_gates=("DRADeviceTaints",),
    )

    assert set(paths(document(status, visible=True))) == documented("sully status")


def test_fields_of_a_maintenance() -> None:
    from sully.api.sully.types import DeviceMaintenance
    from sully.cli.change.maintenance.printer import document

    time = "2026-01-03T02:00:00Z"
    status = {
        "phase": "Running",
        "selected": 8,
        "total": 4,
        "done": 1,
        "phases": {"Draining": 1},
        "nextActionTime": time,
        "units": [{"name": "node-7"}],
    }
    maintenance = msgspec.convert(
        {
            "metadata": {"name": "fw", "annotations": {"sully.dev/created-by": "alice"}},
            "spec": {"selector": {}, "start": time, "end": time},
            "status": status,
        },
        DeviceMaintenance,
    )

    listed = set(paths({"maintenances": [document(maintenance)]}))
    own = {x.replace("phases.Draining", "phases.*") for x in listed if ".units[]" not in x}
    assert own == documented("sully maintenance")


def test_fields_of_a_workload_plan() -> None:
    from sully.cli.change.plan.workload_printer import document
    from sully.domain.planning.candidate_nodes import CandidateNodes
    from sully.planning.workloads import FittedPod, WorkloadFit

    pod = FittedPod(
        name="web-0",
        node="n",
        candidates=CandidateNodes(("n", "m"), 2),
        devices=("d/p/x",),
        message="no",
        evicted=NOON,
    )

    written = document([WorkloadFit(kind="Job", key=Key("ns", "web"), pods=(pod,))])

    assert set(paths(written)) == documented("sully plan of workloads")


def test_fields_of_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(answer(capsys, "version")) == documented("sully version")


def test_fields_of_a_diagnosis_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o755)

    result = answer(capsys, "doctor", "--data-dir", str(tmp_path))

    assert set(paths(result)) == documented("sully doctor")
