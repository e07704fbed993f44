"""Counters, gauges and histograms whose values are plain numbers of the event loop's thread.

The library that prints them guards every value with a lock and finds children by their labels each
time; a pod on its way to a node is counted a hundred times. So values are kept here, and the
library sees them only when the page is read (`collect`). metrics.py makes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Generic, Self, TypeVar

if TYPE_CHECKING:
    # Imported when a page is read: see metrics.py.
    from prometheus_client import Metric

Sample = tuple[str, dict[str, str], float]
"""What is added to the name of the metric, labels besides those of the series, the value."""


class Series(ABC):
    """One metric: either a value itself or, if it has labels, a family of values."""

    kind: str

    def __init__(self, labels: Sequence[str] = ()) -> None:
        self._labels = tuple(labels)
        self._children: dict[tuple[str, ...], Self] = {}

    def labels(self, *values: str, **named: str) -> Self:
        """Return the series with these values of the labels, all by place or all by name."""
        if named and not values and named.keys() == set(self._labels):
            values = tuple(named[label] for label in self._labels)
        found = self._children.get(values)
        if found is None:
            if len(values) != len(self._labels) or not values:
                raise ValueError(f"the labels are {self._labels}, not {values or named}")
            found = self._children[values] = self._child()
        return found

    def each(self) -> Iterator[tuple[dict[str, str], Self]]:
        """Go through what has values, with their labels."""
        if not self._labels:
            yield {}, self
        for key, child in list(self._children.items()):
            yield dict(zip(self._labels, key, strict=True)), child

    def _child(self) -> Self:
        return type(self)()

    @abstractmethod
    def samples(self) -> Iterator[Sample]:
        """Go through the numbers of one value."""


class Counter(Series):
    """Only grows."""

    kind = "counter"

    def __init__(self, labels: Sequence[str] = ()) -> None:
        super().__init__(labels)
        self._value = 0.0

    def inc(self, amount: float = 1) -> None:
        """Count."""
        self._value += amount

    def samples(self) -> Iterator[Sample]:
        """Go through the numbers of one value."""
        yield "_total", {}, self._value


class Gauge(Series):
    """Goes up and down."""

    kind = "gauge"

    def __init__(self, labels: Sequence[str] = ()) -> None:
        super().__init__(labels)
        self._value = 0.0
        self._function: Callable[[], float] | None = None

    def inc(self, amount: float = 1) -> None:
        """Go up."""
        self._value += amount

    def dec(self, amount: float = 1) -> None:
        """Go down."""
        self._value -= amount

    def set(self, value: float) -> None:
        """Say how it is."""
        self._value = value

    def set_function(self, function: Callable[[], float]) -> None:
        """Ask a function whenever somebody looks."""
        self._function = function

    def samples(self) -> Iterator[Sample]:
        """Go through the numbers of one value."""
        yield "", {}, self._value if self._function is None else float(self._function())


class Histogram(Series):
    """How often values lay below which bound."""

    kind = "histogram"

    def __init__(self, labels: Sequence[str] = (), *, buckets: Sequence[float]) -> None:
        super().__init__(labels)
        self._bounds = tuple(buckets)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def _child(self) -> Self:
        return type(self)(buckets=self._bounds)

    def observe(self, value: float) -> None:
        """Take a value in."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def samples(self) -> Iterator[Sample]:
        """Go through the numbers of one value."""
        counts = list(accumulate(self._counts))
        for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
            yield "_bucket", {"le": _text(bound)}, count
        yield "_count", {}, counts[-1]
        yield "_sum", {}, self._sum


S = TypeVar("S", bound=Series)


class Collector(Generic[S]):
    """Shows one metric to the library."""

    def __init__(self, name: str, text: str, series: S) -> None:
        self.series = series
        self._name, self._text = name.removesuffix("_total"), text

    def describe(self) -> list[Metric]:
        """Say what the metric is, so that its name is taken."""
        from prometheus_client import Metric

        return [Metric(self._name, self._text, self.series.kind)]

    def collect(self) -> list[Metric]:
        """Return the numbers as they are now."""
        made = self.describe()
        for labels, value in self.series.each():
            for suffix, more, number in value.samples():
                made[0].add_sample(self._name + suffix, labels | more, number)
        return made


def _text(bound: float) -> str:
    from prometheus_client.utils import floatToGoString

    written: str = floatToGoString(bound)  # type: ignore[no-untyped-call]  # the library has no type here
    return written
