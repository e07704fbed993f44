"""Reports once which real clients are missing."""

import pytest

from e2e import kubectls

pytestmark = pytest.mark.e2e
OLD, NEW = 23, 27


def test_an_old_and_a_new_kubectl_are_here() -> None:
    minors = [item.minor for item in kubectls.find()]

    missing = []
    if not any(minor <= OLD for minor in minors):
        missing.append(f"no kubectl up to 1.{OLD} (`make test` fetches one on Debian)")
    if not any(minor >= NEW for minor in minors):
        missing.append(f"no kubectl from 1.{NEW} on (put one on PATH)")
    if missing:
        pytest.skip("NOT TESTED WITH EVERY KUBECTL: " + "; ".join(missing))

    assert minors == sorted(set(minors))
