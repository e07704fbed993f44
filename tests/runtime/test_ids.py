from __future__ import annotations

import random
from uuid import UUID

from sully.runtime.ids import ALPHABET, Ids


def test_a_uid_is_a_random_uuid_in_its_usual_form() -> None:
    ids = Ids()
    made = {ids.uid() for _ in range(1000)}

    assert len(made) == 1000
    assert {UUID(uid).version for uid in made} == {4}
    assert all(str(UUID(uid)) == uid for uid in made)


def test_a_suffix_uses_kubernetes_letters() -> None:
    ids = Ids()

    assert {len(ids.suffix()) for _ in range(100)} == {5}
    assert set(ids.suffix(20_000)) == set(ALPHABET)
    assert ids.suffix(0) == ""


def test_a_seed_repeats_everything() -> None:
    one, two = (Ids(random.Random(7)) for _ in range(2))

    assert (one.uid(), one.suffix()) == (two.uid(), two.suffix())
