"""The values behind the metrics: what they count, and what the page shows of it."""

from __future__ import annotations

import pytest

from sully.runtime.metrics import Metrics


def page(metrics: Metrics) -> list[str]:
    """Return the lines of the page, without those that explain and those of every page."""
    lines = metrics.render().decode().splitlines()
    return [line for line in lines if not line.startswith(("#", "apiserver_"))]


def test_a_histogram_counts_a_value_in_every_bucket_that_holds_it() -> None:
    metrics = Metrics()
    seen = metrics.histogram("seen_seconds", "Seen.", buckets=(0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        seen.observe(value)

    assert page(metrics) == [
        'seen_seconds_bucket{le="0.1"} 2.0',
        'seen_seconds_bucket{le="1.0"} 3.0',
        'seen_seconds_bucket{le="+Inf"} 4.0',
        "seen_seconds_count 4.0",
        "seen_seconds_sum 7.65",
    ]


def test_children_of_a_family_are_kept_apart_and_found_again() -> None:
    metrics = Metrics()
    doors = metrics.gauge("doors", "Doors.", ("floor", "side"))
    doors.labels("1", "left").inc(3)
    doors.labels(side="left", floor="1").dec()
    doors.labels("2", "left").set_function(lambda: 9)

    assert page(metrics) == [
        'doors{floor="1",side="left"} 2.0',
        'doors{floor="2",side="left"} 9.0',
    ]


def test_a_family_without_children_reports_nothing() -> None:
    metrics = Metrics()
    metrics.counter("steps_total", "Steps.", ("who",))
    metrics.histogram("waits_seconds", "Waits.", ("who",), buckets=(1.0,))

    assert page(metrics) == []
    assert b"# TYPE steps_total counter" in metrics.render()


@pytest.mark.parametrize("values", [(), ("a",), ("a", "b", "c")])
def test_labels_that_are_not_those_of_the_family_are_refused(values: tuple[str, ...]) -> None:
    family = Metrics().counter("steps_total", "Steps.", ("one", "two"))
    with pytest.raises(ValueError, match="label"):
        family.labels(*values)


def test_a_label_by_another_name_is_refused() -> None:
    family = Metrics().counter("steps_total", "Steps.", ("one",))
    with pytest.raises(ValueError, match="label"):
        family.labels(two="a")


def test_a_child_of_a_histogram_has_its_buckets() -> None:
    metrics = Metrics()
    family = metrics.histogram("seen_seconds", "Seen.", ("name",), buckets=(1.0, 2.0))
    family.labels("a").observe(1.5)

    assert [line.rpartition(" ")[2] for line in page(metrics)] == [
        "0.0",
        "1.0",
        "1.0",
        "1.0",
        "1.5",
    ]


def test_a_name_can_be_taken_once_and_who_asks_again_continues() -> None:
    metrics = Metrics()
    metrics.counter("steps_total", "Steps.").inc()
    metrics.counter("steps_total", "Steps.").inc()

    assert page(metrics) == ["steps_total 2.0"]


def test_a_computed_gauge_is_read_on_each_scrape_and_belongs_to_the_last_registration() -> None:
    metrics = Metrics()
    values: dict[tuple[str, ...], float] = {("b", "1"): 2, ("a", "2"): 1}
    metrics.computed("rooms", "Rooms.", ("floor", "side"), lambda: values)

    assert page(metrics) == ['rooms{floor="a",side="2"} 1.0', 'rooms{floor="b",side="1"} 2.0']
    del values["a", "2"]
    assert page(metrics) == ['rooms{floor="b",side="1"} 2.0']
    metrics.computed("rooms", "Rooms.", ("floor", "side"), dict)
    assert page(metrics) == []
