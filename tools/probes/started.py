"""Starts to measure when it is imported, if the environment asks for it.

A module, so that one import before all others of a `conftest.py` is enough.
"""

import os

from probes import importer

VARIABLE = "SULLY_COVERAGE"
MEASURING = bool(os.environ.get(VARIABLE))

if MEASURING:
    importer.start()
