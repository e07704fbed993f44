"""Tests in a browser run on their own: `make browser`.

Beside other tests on few cores a page sometimes shows nothing until it is loaded again, and a test
that waits for it fails after minutes.
"""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a browser, unless it is asked for."""
    if "browser" in (config.option.markexpr or ""):
        return
    left_out = [item for item in items if item.get_closest_marker("browser")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
