from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from sully.runtime import descriptors

LIMITS = {
    "a soft limit is raised to the hard one": ((100, 150), 150),
    "but not without bounds": ((100, 10_000), 1000),
    "what is enough stays": ((1500, 2000), 1500),
    "there is nothing to raise": ((100, 100), 100),
}
PROGRAM = """
import resource, sys
from sully.runtime import descriptors
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
print(descriptors.raise_limit(1000), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(("limits", "expected"), LIMITS.values(), ids=LIMITS.keys())
def test_the_limit_is_raised(limits: tuple[int, int], expected: int) -> None:
    # In a process of its own, since nobody gets a hard limit back.
    command = [sys.executable, "-c", PROGRAM, *map(str, limits)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert printed.split() == [str(expected)] * 2


def test_the_limit_is_that_of_the_process() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    assert descriptors.limit() in (soft, descriptors.MOST)
