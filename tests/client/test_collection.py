"""Copies of collections: what a fork shares with the copy that it was made from, and what not."""

from __future__ import annotations

from sully.client.informers.cache import Cache
from sully.client.transport import Key, Kind, WatchEvent

Obj = dict[str, object]
THINGS: Kind[Obj] = Kind("example.com", "v1", "things", "Thing", dict[str, object])


def thing(name: str, version: str = "1") -> Obj:
    metadata = {"name": name, "namespace": "a", "uid": name, "resourceVersion": version}
    return {"metadata": metadata}


def test_a_fork_goes_its_own_way_and_is_not_reported() -> None:
    copy, heard = Cache(THINGS), list[Obj | None]()
    copy.replace([thing("x"), thing("y")])
    copy.on_change(lambda _, new: heard.append(new))
    heard.clear()
    fork = copy.fork()

    fork.change(WatchEvent("MODIFIED", thing("x", "2"), ""))
    fork.change(WatchEvent("DELETED", thing("y"), ""))

    assert list(fork.values()) == [thing("x", "2")]
    assert [copy.get(Key("a", name)) for name in "xy"] == [thing("x"), thing("y")]
    assert heard == []


def test_what_is_amended_is_there_and_not_reported() -> None:
    copy, heard = Cache(THINGS), list[Obj | None]()
    copy.replace([thing("x")])
    copy.on_change(lambda _, new: heard.append(new))
    heard.clear()

    copy.amend(thing("x", "2"))

    assert list(copy.values()) == [thing("x", "2")]
    assert heard == []
