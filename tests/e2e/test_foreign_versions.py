"""Servers that have devices only in an older version, or leave evicting to Sully."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from e2e.beside import APPLY, LEASE, as_account
from e2e.watching import until
from kube.process import foreign
from kube.scenes import DRIVER, OURS, Scene
from sully.testing.remote import controllers

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@dataclass(frozen=True)
class Case:
    flags: tuple[str, ...]
    devices: str
    rules: str
    install: tuple[str, ...] = ()
    sully_evicts: bool = False


CASES = {
    "1.33 with the first beta": Case(
        ("--minor", "33", "--devices", "v1beta1", "--rules", "v1alpha3"), "v1beta1", "v1alpha3"
    ),
    "1.33 with the second beta": Case(
        ("--minor", "33", "--devices", "v1beta2", "--rules", "v1alpha3"), "v1beta2", "v1alpha3"
    ),
    "1.36, where Sully evicts": Case(
        ("--minor", "36", "--devices", "v1", "--rules", "v1beta2", "--no-evictor"),
        "v1",
        "v1beta2",
        install=("--evictor", "sully"),
        sully_evicts=True,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_devices_are_scheduled_shown_and_evicted_from(case: Case) -> None:
    with foreign(*case.flags) as there:
        done = there.sully(*APPLY, *case.install)
        assert done.returncode == 0, done.stderr
        config = as_account(there.admin(), there.kubeconfig, there.folder / "account")
        with controllers(config, "--lease", LEASE, *case.install) as crew:
            crew.wait_for("leading since")
            scene = Scene(there, case.devices)
            scene.start("tenant", "sully")
            shown = json.loads(there.sully("devices", "-o", "json").stdout)
            flags = ("--name", "hot", "-y", "--no-wait")
            target = f"{DRIVER}/n1/{scene.held('tenant')}"
            tainted = there.sully("taint", "device", target, "example.com/hot:NoExecute", *flags)
            assert tainted.returncode in (0, 3), tainted.stderr
            scene.wait_until_evicted("tenant")
            until(there.admin(), f"{OURS}/taintrecords", lambda result: len(result) == 1)
            if case.sully_evicts:
                until(there.admin(), f"{OURS}/evictionrecords", lambda result: len(result) == 1)
            paused = there.sully("evictions", "pause", "hot")
            reported = there.sully("explain", "pod", "team/tenant")
            assert crew.stop() == 0

    attributes = [device["attributes"] for device in shown["devices"]]
    assert attributes == [{"model": {"value": "a100"}}] * 3
    assert "forbidden" not in "".join(crew.output).lower()
    assert (paused.returncode == 0) == case.sully_evicts
    assert reported.returncode == 0, reported.stderr
