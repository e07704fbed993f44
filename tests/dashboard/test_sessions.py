"""Sessions of the dashboard end when they should, and no secret is stored."""

from __future__ import annotations

from sully.dashboard.sessions import SessionLimits, Sessions
from sully.testing.clock import FakeClock


def test_a_viewer_without_an_open_session_is_forgotten() -> None:
    clock = FakeClock()
    sessions: Sessions[str] = Sessions(clock)
    sessions.open("alice")
    clock.advance(3000)
    sessions.open("bob")

    clock.advance(1000)

    assert sessions.viewers() == ["bob"]


def test_a_rejected_viewer_loses_all_its_sessions() -> None:
    sessions: Sessions[str] = Sessions(FakeClock())
    first, second = sessions.open("alice"), sessions.open("alice")
    other = sessions.open("bob")

    sessions.close_all("alice")

    assert [sessions.find(x) is not None for x in (first, second, other)] == [False, False, True]


def test_too_many_sessions_end_the_one_that_was_not_used_the_longest() -> None:
    clock = FakeClock()
    sessions: Sessions[int] = Sessions(clock, SessionLimits(most=2))
    secrets = []
    for number in range(3):
        secrets.append(sessions.open(number))
        clock.advance(1)

    assert [sessions.find(x) is not None for x in secrets] == [False, True, True]


def test_secrets_are_not_kept() -> None:
    sessions: Sessions[str] = Sessions(FakeClock())
    code, secret = sessions.new_code(), sessions.open("alice")

    assert code not in str(vars(sessions))
    assert secret not in str(vars(sessions))
    assert code != sessions.new_code()


def test_no_secret_is_no_session() -> None:
    sessions: Sessions[str] = Sessions(FakeClock())
    sessions.open("alice")

    assert sessions.find("") is None
    assert not sessions.redeem("")
