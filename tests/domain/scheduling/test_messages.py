"""The texts of the reasons for which a filter rejects a node."""

from __future__ import annotations

from itertools import chain

from sully.domain.allocation.verdicts import UnallocatableReason
from sully.domain.scheduling.filters import InsufficientResource, NodeReason
from sully.domain.scheduling.messages import filter_reason

REASONS = (*NodeReason, *UnallocatableReason, InsufficientResource("cpu"))


def test_every_reason_has_its_own_text() -> None:
    texts = [filter_reason(reason) for reason in REASONS]

    assert len(set(texts)) == len(REASONS)


def test_no_reason_of_a_node_equals_one_of_devices() -> None:
    names = [reason.value for reason in chain(NodeReason, UnallocatableReason)]

    assert len(set(names)) == len(names)
