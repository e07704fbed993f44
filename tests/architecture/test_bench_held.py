"""The picture of a held load has a line for each figure."""

import importlib.util
from typing import Any
from xml.etree import ElementTree

from architecture.project import ROOT


def picture(samples: list[dict[str, float]]) -> ElementTree.Element:
    spec = importlib.util.spec_from_file_location("held_plot", ROOT / "bench/held_plot.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return ElementTree.fromstring(module.picture("5000 nodes & more", samples))


def test_every_sample_is_a_point() -> None:
    samples = [
        {"seconds": 10.0 * n, "memory": 500.0, "p99": 0.01 * n, "watch_p99": 0.0}
        for n in range(1, 7)
    ]

    drawn = picture(samples)

    lines = [part for part in drawn if part.tag.endswith("polyline")]
    assert [len(line.attrib["points"].split()) for line in lines] == [6, 6, 6]
    texts = [part.text for part in drawn if part.tag.endswith("text")]
    assert {"5000 nodes & more", "1 min", "550", "66"} <= set(texts)


def test_no_samples_are_an_empty_picture() -> None:
    assert len(picture([])) > 0
