"""Every reason has an entry in each table that is about reasons: a new one fails here, by name."""

from __future__ import annotations

from typing import get_args

import pytest

from sully.domain.allocation.rejections.reason_counts import DeviceFinding
from sully.domain.allocation.verdicts import RejectionReason, RequestDiagnosis, Unallocatable
from sully.domain.scheduling.diagnosis import Diagnosis, diagnosis_of
from sully.domain.scheduling.filters import NodeReason
from sully.explain.facts.devices.candidate_pods import WRONG_KIND
from sully.explain.facts.pods.rejections import rejection_note
from sully.explain.shortages import ShortageReader
from sully.explain.sources import Sources
from sully.explain.templates import NOTES
from sully.explain.trials.scheduler import RejectedNodes, RejectionKind
from sully.testing.builders import device, slice_
from sully.testing.clock import NOON
from sully.views.kinds import SLICES
from sully.views.snapshot.snapshot import Objects, Snapshot

INVENTORY = Snapshot([Objects(SLICES, [slice_("1", device("gpu-0"))])], taken=NOON).inventory
(POOL,) = INVENTORY.pools()
DEVICE = INVENTORY.devices(POOL)["gpu-0"]

every_node_reason = pytest.mark.parametrize("reason", NodeReason, ids=lambda x: x.name)
every_rejection_reason = pytest.mark.parametrize("reason", RejectionReason, ids=lambda x: x.name)


def diagnosis(reason: RejectionReason) -> Diagnosis:
    """Return the diagnosis of a pod whose request can have no device for this reason."""
    request = RequestDiagnosis("ns/claim", "gpu", 1, 0, {reason: 2})
    return diagnosis_of(Unallocatable(requests=(request,)), nodes=1, reached=1, counted=1)


@every_node_reason
def test_explain_has_a_text_for_a_node(reason: NodeReason) -> None:
    assert rejection_note(RejectedNodes(reason, ("node-1",))).name in NOTES


@pytest.mark.parametrize("kind", get_args(RejectionKind))
def test_every_kind_of_rejection_has_a_text(kind: str) -> None:
    assert f"Nodes/{kind}" in NOTES


@every_rejection_reason
def test_a_device_has_a_distance(reason: RejectionReason) -> None:
    assert DeviceFinding(DEVICE, reason).distance() > 0


@every_rejection_reason
def test_the_condition_has_a_reason_with_a_text(reason: RejectionReason) -> None:
    word = diagnosis(reason).reason

    assert word != "NoDevices"
    assert word in NOTES


@every_rejection_reason
def test_explain_has_a_text_for_a_request(reason: RejectionReason) -> None:
    (request,) = diagnosis(reason).requests
    (name,) = request.refused

    assert f"Refused/{name}" in NOTES


@every_rejection_reason
def test_explain_counts_the_devices(reason: RejectionReason) -> None:
    (requests, *_) = ShortageReader(diagnosis(reason), {}, Sources()).tables()
    ((*_, refused),) = requests.rows

    assert refused.endswith(" 2")


@every_rejection_reason
def test_explain_has_a_text_for_a_device(reason: RejectionReason) -> None:
    assert reason in WRONG_KIND or f"Candidate/{reason.name}" in NOTES
