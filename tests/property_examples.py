"""How many examples a property tries: some of them in `make test`, all in `make robust`.

Hypothesis draws others each time, so many runs with few examples find what one run with many does.
"""

import os

ALL = os.environ.get("SULLY_EXAMPLES") == "all"
_PART, _AT_LEAST = 4, 10


def examples(number: int) -> int:
    """Return how many of a property's examples are tried in this run."""
    return number if ALL else min(number, max(number // _PART, _AT_LEAST))
