"""What the drivers of the demo's machines complain about, by the numbers of machine and device."""

from collections.abc import Mapping
from typing import Final

FAULTS: Final[Mapping[tuple[int, int], Mapping[str, str]]] = {
    (4, 2): {"key": "gpu.sully.dev/ecc-errors", "value": "uncorrected", "effect": "NoSchedule"},
    (8, 5): {"key": "gpu.sully.dev/ecc-errors", "value": "corrected", "effect": "NoSchedule"},
}
