"""Every input of the corpus is read or refused; what a fuzzer finds is added to it."""

from __future__ import annotations

import pytest

from robust.inputs.targets import CORPUS, NAMES, inputs, target

MOST_BYTES = 4096
"""Of one input: the corpus is small."""


@pytest.mark.parametrize("name", NAMES)
def test_the_corpus_is_read_or_refused(name: str) -> None:
    read = target(name)
    for path in inputs(name):
        read(path.read_bytes())


def test_every_target_has_a_corpus_and_it_is_small() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} == set(NAMES)
    for name in NAMES:
        assert len(inputs(name)) >= 3
        assert max(path.stat().st_size for path in inputs(name)) <= MOST_BYTES
