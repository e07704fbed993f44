"""Sessions of the dashboard end when they should, and no secret is stored."""

from __future__ import annotations

import pytest

from sully.dashboard.sessions import SessionLimits, Sessions, TooManySessionsError
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


def test_too_many_sessions_of_a_user_end_the_one_that_was_not_used_the_longest() -> None:
    clock = FakeClock()
    sessions: Sessions[str] = Sessions(clock, SessionLimits(per_user=2), user_of=lambda x: x[0])
    other = sessions.open("other")
    secrets = []
    for number in range(3):
        clock.advance(1)
        secrets.append(sessions.open(f"a{number}"))

    assert [sessions.find(x) is not None for x in secrets] == [False, True, True]
    assert sessions.find(other) is not None


def test_no_session_ends_because_others_sign_in() -> None:
    clock = FakeClock()
    sessions: Sessions[str] = Sessions(clock, SessionLimits(most=2, per_user=2))
    first = sessions.open("admin")
    sessions.open("alice")
    with pytest.raises(TooManySessionsError):
        sessions.open("bob")

    assert sessions.find(first) is not None
    clock.advance(3600)
    assert sessions.find(sessions.open("bob")) is not None


def test_secrets_are_not_kept() -> None:
    sessions: Sessions[str] = Sessions(FakeClock())
    code, secret = sessions.new_code(), sessions.open("alice")

    assert code not in str(vars(sessions))
    assert secret not in str(vars(sessions))
    assert code != sessions.new_code()


def test_no_secret_is_not_a_session() -> None:
    sessions: Sessions[str] = Sessions(FakeClock())
    sessions.open("alice")

    assert sessions.find("") is None
    assert not sessions.redeem("")
