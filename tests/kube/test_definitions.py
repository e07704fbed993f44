"""Our kinds as custom resources: a server with the definitions refuses what our own refuses.

It also prints the same columns. Messages differ: each server words its own.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.beside import APPLY
from e2e.raw import Answer, Raw
from kube.process import Foreign
from kube.verdicts import BASES, CASES, PATCH, TAINTS, spec_of
from sully.api import build_scheme
from sully.domain.capabilities.duties import OWN_VERSION
from sully.domain.capabilities.offers import OURS
from sully.machinery.strategy import ResourceType
from sully.testing.cluster import Process, process

Obj = dict[str, Any]
KINDS = {resource.kind: resource for resource in build_scheme().resources()}
LISTS = "DRAListTypeAttributes=true"


@pytest.fixture(scope="module")
def own() -> Iterator[Process]:
    with process("--store", "memory", "--disable-controllers") as up:
        yield up


@pytest.fixture
def installed(there: Foreign) -> Foreign:
    done = there.sully(*APPLY)
    assert done.returncode == 0, done.stderr
    return there


def _where(resource: ResourceType, *, own: bool) -> str:
    version = (resource.group, resource.versions[0].name) if own else (OURS, OWN_VERSION)
    within = "/namespaces/default" if resource.namespaced else ""
    return f"/apis/{'/'.join(version)}{within}/{resource.plural}"


def _create(server: Raw, kind: str, spec: Obj, *, own: bool, dry_run: bool = True) -> Answer:
    where = _where(KINDS[kind], own=own)
    group, version = where.split("/")[2:4]
    body = {
        "apiVersion": f"{group}/{version}",
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": spec,
    }
    return server.request("POST", f"{where}?dryRun=All" if dry_run else where, body)


def test_verdicts(own: Process, installed: Foreign, tmp_path: Path) -> None:
    ours, theirs = Raw.admin(own.kubeconfig, tmp_path), installed.admin()
    specs = {f"valid {kind}": (kind, spec) for kind, spec in BASES.items()}
    specs |= {case: (CASES[case][0], spec_of(case)) for case in CASES}

    verdicts: dict[str, tuple[int, int]] = {}
    for case, (kind, spec) in specs.items():
        first = _create(ours, kind, spec, own=True)
        second = _create(theirs, kind, spec, own=False)
        verdicts[case] = (first.code // 100, second.code // 100)

    assert {case: codes for case, codes in verdicts.items() if len(set(codes)) > 1} == {}
    assert {verdicts[f"valid {kind}"] for kind in BASES} == {(2, 2)}
    assert set(verdicts.values()) == {(2, 2), (4, 4)}


def test_lists_of_values_need_their_gate(own: Process, there: Foreign) -> None:
    case = "versions: semver"
    plain = there.sully(*APPLY)
    refused = _create(there.admin(), PATCH, spec_of(case), own=False)
    gated = there.sully(*APPLY, "--feature-gates", LISTS)
    accepted = _create(there.admin(), PATCH, spec_of(case), own=False)
    wrong = _create(there.admin(), PATCH, spec_of("versions: no semver"), own=False)

    assert (plain.returncode, gated.returncode) == (0, 0), gated.stderr
    assert (refused.code, accepted.code, wrong.code) == (422, 201, 422)


@pytest.mark.parametrize("kind", BASES)
def test_columns(
    kind: str, own: Process, installed: Foreign, any_kubectl: Path, tmp_path: Path
) -> None:
    ours, theirs = Raw.admin(own.kubeconfig, tmp_path), installed.admin()
    for server, is_own in ((ours, True), (theirs, False)):
        made = _create(server, kind, BASES[kind], own=is_own, dry_run=False)
        assert made.code == 201, made.body
        if kind == TAINTS:
            path = f"{_where(KINDS[kind], own=is_own)}/a/status"
            status = {"status": {"evicted": 3, "taint": BASES[kind]["taint"]}}
            answer = server.request("PATCH", path, status, "application/merge-patch+json")
            assert answer.code == 200, answer.body

    first = _table(any_kubectl, own.kubeconfig, kind)
    second = _table(any_kubectl, installed.kubeconfig, kind)
    theirs.request("DELETE", f"{_where(KINDS[kind], own=False)}/a")
    ours.request("DELETE", f"{_where(KINDS[kind], own=True)}/a")

    assert first == second


def _table(kubectl: Path, kubeconfig: Path, kind: str) -> list[list[str]]:
    """Return what kubectl prints, without ages; an absent value may be empty or `<none>`."""
    # A cache of its own: another server may have had the same port.
    cache = f"--cache-dir={kubeconfig.parent / 'kubectl-cache'}"
    command = [str(kubectl), "--kubeconfig", str(kubeconfig), cache, "get", KINDS[kind].plural]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    head, row = done.stdout.splitlines()
    titles = head.split()
    starts = [head.index(title) for title in titles]
    ends = [*starts[1:], None]
    cells = [row[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    shown = ["" if cell == "<none>" else cell for cell in cells]
    ages = {"AGE", "EVICTED", "DELETED"} if kind != TAINTS else {"AGE", "DELETED"}
    return [titles, [cell for title, cell in zip(titles, shown, strict=True) if title not in ages]]
