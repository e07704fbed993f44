"""A picture of a benchmark has a line for each panel."""

import importlib.util
import sys
from typing import Any
from xml.etree import ElementTree

import pytest

from architecture.project import ROOT


@pytest.fixture
def plots(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("plots", ROOT / "bench/plots.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks up the names of its types in its module.
    monkeypatch.setitem(sys.modules, "plots", module)
    spec.loader.exec_module(module)
    return module


def test_every_sample_is_a_point(plots: Any) -> None:
    minutes = [n / 6 for n in range(1, 7)]
    panels = [
        plots.Panel("memory", minutes, [500.0] * 6, "min"),
        plots.Panel("cost", minutes, [0.5 * n for n in range(1, 7)], "min", dots=True),
    ]

    drawn = ElementTree.fromstring(plots.picture("5000 nodes & more", panels))

    lines = [part for part in drawn if part.tag.endswith("polyline")]
    assert [len(line.attrib["points"].split()) for line in lines] == [6, 6]
    assert len([part for part in drawn if part.tag.endswith("circle")]) == 6
    texts = [part.text for part in drawn if part.tag.endswith("text")]
    assert {"5000 nodes & more", "1 min", "550", "3.3"} <= set(texts)


def test_no_samples_are_an_empty_panel(plots: Any) -> None:
    drawn = ElementTree.fromstring(plots.picture("nothing", [plots.Panel("memory", [], [], "min")]))

    assert len(drawn) > 0
