"""How users name objects, and suggestions for names that are not found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from manifests import Obj, gpus, slice_, stored
from sully.cli.main import main
from sully.cli.selection.selectors import named, parse_pattern, rule_named
from sully.cli.selection.suggestions import device_not_found
from sully.testing.clock import FakeClock
from sully.views.snapshot.file import from_documents
from sully.views.snapshot.snapshot import Snapshot


def _slice(pool: str) -> Obj:
    return stored(slice_(pool, pool, *gpus(2)))


@pytest.fixture(scope="module")
def fleet() -> Snapshot:
    return from_documents([_slice("node-1"), _slice("node-2")], now=FakeClock().now())


MEANT = {
    "a driver with a typo": (
        "gpu.example.con",
        'driver "gpu.example.con" not found (did you mean "gpu.example.com"?)',
    ),
    "a pool with a typo": (
        "gpu.example.com/nod-1",
        'pool "nod-1" not found (did you mean "node-1"?)',
    ),
    "a device with a typo": (
        "gpu.example.com/node-1/gpu0",
        'device "gpu0" not found in pool "node-1" (did you mean "gpu-0"?)',
    ),
    "a device of any pool": (
        "*/*/gpu0",
        'device "gpu0" not found (did you mean "gpu-0"?)',
    ),
    "a glob": ("*/rack*", 'no pool matches "rack*"'),
    "a node alone": ("node-1", """driver "node-1" not found (did you mean '*/node-1/*'?)"""),
    "nodes alone": ("node-*", """no driver matches "node-*" (did you mean '*/node-*/*'?)"""),
    "a node and a device": (
        "node-1/gpu-0",
        """driver "node-1" not found (did you mean '*/node-1/gpu-0'?)""",
    ),
    "a device alone": ("gpu-1", """driver "gpu-1" not found (did you mean '*/*/gpu-1'?)"""),
    "a node and a device that it lacks": ("node-1/gpu-7", 'driver "node-1" not found'),
    "nothing like it": ("tpu", 'driver "tpu" not found'),
    "what is there": ("gpu.example.com/node-1/gpu-0", ""),
}


@pytest.mark.parametrize(("text", "want"), MEANT.values(), ids=MEANT)
def test_suggested_names(text: str, want: str, fleet: Snapshot) -> None:
    assert device_not_found(fleet, parse_pattern(text)) == want


NAMED = {
    "two words": (("rule", "a"), ("rule", "a")),
    "as our tables have it": (("rule/a",), ("rule", "a")),
    "as kubectl calls it": (("DeviceTaintRules", "a"), ("rule", "a")),
    "as kubectl prints names": (("devicetaintrule.resource.k8s.io/a",), ("rule", "a")),
    "in a namespace": (("pod/team/a",), ("pod", "team/a")),
    "a device": (("device", "a/b/c"), ("device", "a/b/c")),
    "no name": (("pods",), ("pod", "")),
    "unknown": (("node/a",), ("node", "a")),
    "nothing": (("",), ("", "")),
}


@pytest.mark.parametrize(("arguments", "want"), NAMED.values(), ids=NAMED)
def test_what_is_named(arguments: tuple[str, ...], want: tuple[str, str]) -> None:
    assert named(*arguments) == want


RULES = {"a": "a", "rule/a": "a", "devicetaintrule.resource.k8s.io/a-*": "a-*", "pod/a": "pod/a"}


@pytest.mark.parametrize(("text", "want"), RULES.items(), ids=RULES)
def test_rules_that_are_named(text: str, want: str) -> None:
    assert rule_named(text) == want


SERVERS = {
    "one that was started here": (("data/kubeconfig",), "data/kubeconfig"),
    "the one that was started last": (
        ("data/kubeconfig", "data/demo/kubeconfig"),
        "data/demo/kubeconfig",
    ),
    "none": ((), None),
}


@pytest.mark.parametrize(("files", "want"), SERVERS.values(), ids=SERVERS)
def test_servers_that_were_started_here(
    files: tuple[str, ...],
    want: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    for age, name in enumerate(files):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (age, age))

    assert main(["devices"]) == 1
    hint = f"\n  a server was started here: export KUBECONFIG={tmp_path / want}\n" if want else ""
    err = capsys.readouterr().err
    assert err.startswith("error: no cluster is configured")
    assert err.endswith(hint or "`sully up`\n")
