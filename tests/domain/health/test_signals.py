"""Signals from outside: recorded once, however often and in whatever order they arrive."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sully.api.sully.types import DeviceHealth, DeviceHealthSpec
from sully.domain.health.reports import health_of
from sully.domain.health.signals import RETENTION, Result, Signal, apply
from sully.domain.health.targets import Target
from sully.machinery.meta import ObjectMeta

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
GPU = Target(node="n1", uuid="gpu-1")


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def fires(time: float, key: str = "hot", severity: str = "Critical") -> Signal:
    return Signal(key=key, severity=severity, since=at(time), time=at(time))


def ends(time: float, key: str = "hot") -> Signal:
    return replace(fires(time, key), active=False)


def alert(since: float, *, ended: float | None = None) -> Signal:
    """Return what Alertmanager sends: since when, and not when it was observed."""
    time = since if ended is None else ended
    return replace(fires(since), active=ended is None, time=at(time))


class Ledger:
    """A report, and what became of the signals."""

    def __init__(self) -> None:
        self.spec: DeviceHealthSpec | None = None
        self.writes = 0

    def send(self, *signals: Signal, target: Target = GPU, now: float = 60) -> list[str]:
        pairs = [(target, signal) for signal in signals]
        spec, results = apply(self.spec, pairs, node="n1", now=at(now))
        self.spec, self.writes = spec or self.spec, self.writes + (spec is not None)
        return list(map(str, results))

    def active(self, now: float = 60) -> list[str]:
        if self.spec is None:
            return []
        report = DeviceHealth(metadata=ObjectMeta(name="n1.signals"), spec=self.spec)
        judged = (health_of(report, device, now=at(now)) for device in self.spec.devices)
        return sorted(x.key for health in judged if health is not None for x in health.reasons)


def test_a_signal_is_recorded_and_cleared() -> None:
    ledger = Ledger()

    assert ledger.send(fires(1)) == ["Recorded"]
    assert ledger.active() == ["hot"]
    assert ledger.spec is not None
    assert (ledger.spec.overall_status, ledger.spec.reporter) == ("Unhealthy", "signals")
    assert ledger.send(ends(2)) == ["Cleared"]
    assert ledger.active() == []
    assert ledger.spec.overall_status == "Healthy"


def test_a_duplicate_changes_nothing() -> None:
    ledger = Ledger()
    ledger.send(fires(1))

    assert ledger.send(fires(1), fires(1)) == ["Duplicate", "Duplicate"]
    assert ledger.writes == 1


def test_a_repetition_is_counted() -> None:
    ledger = Ledger()
    assert ledger.send(fires(1), fires(5)) == ["Recorded", "Recorded"]
    assert ledger.spec is not None
    (reason,) = ledger.spec.devices[0].reasons
    assert (reason.count, reason.since, reason.last_time) == (2, at(1), at(5))


def test_what_is_late_does_not_set_again_what_was_cleared() -> None:
    ledger = Ledger()
    ledger.send(fires(1), ends(10))

    assert ledger.send(fires(1), fires(5), ends(10), ends(7)) == [
        "Late",
        "Late",
        "Duplicate",
        "Duplicate",
    ]
    assert ledger.active() == []
    assert ledger.send(fires(11)) == ["Recorded"]
    assert ledger.send(ends(10)) == ["Late"]
    assert ledger.active() == ["hot"]


def test_an_end_that_arrives_before_its_beginning() -> None:
    ledger = Ledger()

    assert ledger.send(ends(10)) == ["Cleared"]
    assert ledger.send(fires(3)) == ["Late"]
    assert ledger.active() == []


def test_an_alert_is_repeated_for_hours_and_ends_once() -> None:
    ledger = Ledger()
    assert ledger.send(alert(1)) == ["Recorded"]
    assert ledger.send(alert(1), now=7200) == ["Duplicate"]
    assert ledger.send(alert(1, ended=9000), now=9000) == ["Cleared"]
    assert ledger.send(alert(1), now=9010) == ["Late"]
    assert ledger.send(alert(9500), now=9500) == ["Recorded"]
    assert ledger.active(9500) == ["hot"]


def test_what_expires_can_be_sent_again() -> None:
    ledger = Ledger()
    ledger.send(replace(alert(1), expires=at(100)))
    assert (ledger.active(99), ledger.active(100)) == (["hot"], [])

    assert ledger.send(replace(alert(1), expires=at(300)), now=200) == ["Recorded"]
    assert ledger.active(200) == ["hot"]


def test_a_signal_from_the_future_is_refused() -> None:
    ledger = Ledger()

    assert ledger.send(fires(3600), now=60) == ["Invalid"]
    assert ledger.spec is None


def test_a_mild_signal_does_not_clear_a_severe_one() -> None:
    ledger = Ledger()
    ledger.send(fires(1), fires(2, "warm", "Warning"), ends(3, "warm"))

    assert ledger.active() == ["hot"]
    assert ledger.spec is not None
    assert ledger.spec.overall_status == "Unhealthy"


def test_what_was_cleared_is_forgotten_after_a_day() -> None:
    ledger = Ledger()
    ledger.send(fires(1), ends(2))
    later = RETENTION.total_seconds() + 10
    ledger.send(fires(later, "other"), now=later)

    assert ledger.spec is not None
    assert [x.key for x in ledger.spec.devices[0].reasons] == ["other"]


def test_a_report_has_room_for_so_many() -> None:
    ledger = Ledger()
    results = ledger.send(*(fires(1, f"k{number}") for number in range(33)))
    assert results == ["Recorded"] * 32 + ["ReportFull"]

    for number in range(2, 258):
        results = ledger.send(fires(1), target=Target(node="n1", uuid=f"gpu-{number}"))
    assert results == ["ReportFull"]


STEPS = st.lists(
    st.tuples(st.sampled_from(("hot", "loud")), st.integers(1, 20), st.booleans()),
    max_size=8,
    unique_by=lambda step: step[:2],
)


@given(STEPS, st.data())
def test_order_and_repetition_do_not_matter(
    steps: list[tuple[str, int, bool]], data: st.DataObject
) -> None:
    signals = [fires(time, key) if active else ends(time, key) for key, time, active in steps]
    order = data.draw(st.permutations(signals))
    again = data.draw(st.lists(st.sampled_from(signals), max_size=6)) if signals else []
    ledger = Ledger()
    for signal in (*order, *again):
        ledger.send(signal)

    last = {key: active for key, _, active in sorted(steps, key=lambda step: step[1])}
    assert ledger.active() == sorted(key for key, active in last.items() if active)
    assert Result.INVALID not in ledger.send(*order)
