"""What really happened: every transaction that the store acknowledged, in order.

No simulated process can see it. It checks what needs no knowledge of kinds: that acknowledged
writes survive a crash, and that lists and watches are complete and in order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from simulator.network import Batch, Stream, query_selects
from simulator.storage import Actor
from sully.client.calls import Call
from sully.client.transport import Key, ResourceRef
from sully.server.inprocess import Reply
from sully.store.base import Event, StoreKey
from sully.store.state import State
from sully.store.transactions import Transaction

Obj = dict[str, Any]
Listener = Callable[[Event, Obj, Obj | None, Actor], None]
"""Gets an event, the object, the object before, and who sent the request."""


class Truth:
    """All objects and events."""

    def __init__(self, report: Callable[[str, str], None]) -> None:
        self.objects: dict[str, dict[tuple[str, str], Obj]] = defaultdict(dict)
        """Current objects, by resource, then namespace and name."""
        self.revision = 0
        self.listeners: list[Listener] = []
        self._report = report
        self._raw: dict[StoreKey, tuple[int, bytes]] = {}
        self._history: dict[StoreKey, dict[int, Obj]] = defaultdict(dict)
        self._log: dict[str, list[tuple[int, str, StoreKey]]] = defaultdict(list)
        self._in_doubt: list[Transaction] = []
        self._actors: dict[int, Actor] = {}
        self._known = False

    def versions(self, resource: str) -> dict[tuple[str, str], str]:
        """Return the resourceVersions of all objects of a resource."""
        return {key: str(self._raw[StoreKey(resource, *key)][0]) for key in self.objects[resource]}

    def at(self, resource: str, key: Key, version: int) -> Obj | None:
        """Return an object as it was in a version."""
        return self._history[StoreKey(resource, key.namespace, key.name)].get(version)

    # -- the store --------------------------------------------------------------------------------

    def accepted(self, transaction: Transaction, actor: Actor) -> None:
        """Note a transaction that may become durable."""
        self._in_doubt.append(transaction)
        self._actors[id(transaction)] = actor

    def settled(self, transactions: Sequence[Transaction], *, written: bool) -> None:
        """Note transactions that are acknowledged, or reported as not written."""
        for transaction in transactions:
            self._in_doubt.remove(transaction)
            actor = self._actors.pop(id(transaction))
            if written:
                self._apply(transaction, actor)

    def recovered(self, state: State) -> None:
        """Compare what a start found with what was acknowledged."""
        found = {
            record.key: (record.revision, record.value)
            for resource in state.resources()
            for record in state.table(resource).records.values()
        }
        if not self._known:
            self._adopt(state, found)
            return
        if state.revision < self.revision:
            self._report("durable", f"revision {self.revision} became {state.revision}")
        # What was in doubt may be there, but never the later without the earlier.
        while found != self._raw and self._in_doubt:
            transaction = self._in_doubt.pop(0)
            self._apply(transaction, self._actors.pop(id(transaction)))
        self._in_doubt.clear()
        self._actors.clear()
        if found != self._raw:
            lost = sorted(
                str(key) for key in found.keys() | self._raw if found.get(key) != self._raw.get(key)
            )
            self._report("durable", f"after a crash these are not as acknowledged: {lost[:5]}")
            self._adopt(state, found)

    def _adopt(self, state: State, found: dict[StoreKey, tuple[int, bytes]]) -> None:
        self._known = True
        self._raw, self.revision = found, state.revision
        self.objects.clear()
        for key, (revision, value) in found.items():
            obj = self._history[key][revision] = msgspec.json.decode(value)
            self.objects[key.resource][key.namespace, key.name] = obj

    def _apply(self, transaction: Transaction, actor: Actor) -> None:
        if transaction.revision <= self.revision:
            self._report("revisions", f"{transaction.revision} came after {self.revision}")
        self.revision = transaction.revision
        for event in transaction.events:
            key = event.record.key
            objects, name = self.objects[key.resource], (key.namespace, key.name)
            before = objects.get(name)
            obj = msgspec.json.decode(event.record.value)
            self._log[key.resource].append((event.revision, event.kind, key))
            if event.kind == "DELETED":
                objects.pop(name, None)
                self._raw.pop(key, None)
            else:
                objects[name] = self._history[key][event.revision] = obj
                self._raw[key] = (event.revision, event.record.value)
            for listener in self.listeners:
                listener(event, obj, before, actor)

    # -- what servers send ------------------------------------------------------------------------

    def read_started(self) -> int:
        """Return the newest acknowledged revision."""
        return self.revision

    def answered(self, started: int, _: str, call: Call, reply: Reply) -> None:
        """Check that an answer is durable, and not older than what was acknowledged before it."""
        version = int((reply.obj.get("metadata") or {}).get("resourceVersion") or 0)
        plural = call.ref.plural
        if version > self.revision and "dryRun" not in call.options:
            self._report(
                "durable", f"{call.verb} {plural} answered {version} before it was written"
            )
        if call.verb == "list" and version < started:
            self._report("linearizable", f"a list of {plural} is of {version}, not {started}")
        if call.verb == "get" and not call.ref.subresource:
            key = StoreKey(_resource(call.ref), call.ref.namespace, call.ref.name)
            newest = self._raw.get(key, (0, b""))[0]
            if version < newest <= started:
                self._report("linearizable", f"get {key} answered {version}, not {newest}")

    def watch_opened(self, stream: Stream) -> None:
        """Note where a watch starts, if it is to deliver everything of a resource."""
        call = stream.call
        version = call.options.get("resourceVersion", "")
        if version in ("", "0") or query_selects(call.options) or call.ref.namespace:
            return
        log = self._log[_resource(call.ref)]
        stream.seen = bisect_right(log, int(version), key=lambda entry: entry[0])

    def watch_sent(self, stream: Stream, batch: Batch) -> None:
        """Check that a watch sends every event once and in order."""
        if stream.seen < 0:
            return
        log = self._log[_resource(stream.call.ref)]
        for kind, reply in batch:
            metadata = reply.obj["metadata"]
            version = int(metadata["resourceVersion"])
            if kind == "BOOKMARK":
                if version > self.revision:
                    self._report("watches", f"a bookmark is of {version}, after {self.revision}")
                due = bisect_right(log, version, key=lambda entry: entry[0])
                if stream.seen < due:
                    self._report("watches", f"a bookmark hides {log[stream.seen]}")
                continue
            expected = log[stream.seen] if stream.seen < len(log) else None
            sent = (version, kind, (metadata.get("namespace", ""), metadata["name"]))
            if expected is None or sent != (expected[0], expected[1], tuple(expected[2][1:])):
                self._report("watches", f"a watch sent {sent} instead of {expected}")
            stream.seen += 1


def _resource(ref: ResourceRef) -> str:
    return f"{ref.group}/{ref.plural}" if ref.group else ref.plural
