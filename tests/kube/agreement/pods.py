"""Follows the pods of a cluster, with those that are gone, in a thread."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from e2e.raw import Raw
from kube.agreement.objects import WORKLOAD
from kube.agreement.outcomes import PodState

PODS = "/api/v1/pods"
_SELECTED = f"labelSelector={WORKLOAD}"


class PodHistory:
    """All pods of workloads that there have been, by namespace."""

    def __init__(self, admin: Raw) -> None:
        self._admin = admin
        self._pods: dict[str, dict[str, PodState]] = {}
        self._changed: dict[str, float] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def pods(self, namespace: str) -> tuple[PodState, ...]:
        """Return the last known state of all pods there have been in a namespace."""
        with self._lock:
            return tuple(self._pods.get(namespace, {}).values())

    def quiet_seconds(self, namespace: str) -> float:
        """Return for how long nothing has happened in a namespace."""
        with self._lock:
            return time.monotonic() - self._changed.get(namespace, 0.0)

    def touch(self, namespace: str) -> None:
        """Let a namespace count as changed: something is about to happen there."""
        with self._lock:
            self._changed[namespace] = time.monotonic()

    def wait(self, seconds: float) -> None:
        """Wait for some time; less only if nobody follows any more."""
        self._ended.wait(seconds)

    def follow(self) -> None:
        """Go on until `end`."""
        while not self._ended.is_set():
            try:
                version = self._list()
                self._watch(version)
            except (OSError, http.client.HTTPException):
                # The connection was interrupted; what was missed is in the next list.
                continue

    def end(self) -> None:
        """Stop following with the next event."""
        self._ended.set()

    def _list(self) -> str:
        listed = self._admin.request("GET", f"{PODS}?{_SELECTED}").json()
        present = {pod["metadata"]["uid"] for pod in listed["items"]}
        for pod in listed["items"]:
            self._note(pod, gone=False)
        with self._lock:
            for namespace, pods in self._pods.items():
                for uid, state in pods.items():
                    if uid not in present and not state.deleted:
                        pods[uid] = replace(state, deleted=True)
                        self._changed[namespace] = time.monotonic()
        return str(listed["metadata"]["resourceVersion"])

    def _watch(self, version: str) -> None:
        query = f"watch=true&allowWatchBookmarks=true&{_SELECTED}&resourceVersion={version}"
        with self._admin.open("GET", f"{PODS}?{query}") as watch:
            while not self._ended.is_set() and (line := watch.readline()):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                if event["type"] != "BOOKMARK":
                    self._note(event["object"], gone=event["type"] == "DELETED")

    def _note(self, pod: dict[str, Any], *, gone: bool) -> None:
        metadata = pod["metadata"]
        state = PodState(
            uid=metadata["uid"],
            name=metadata["name"],
            workload=metadata["labels"][WORKLOAD],
            node=pod["spec"].get("nodeName", ""),
            phase=pod["status"]["phase"],
            deleted=gone or "deletionTimestamp" in metadata,
            owner=next(
                (f"{x['kind']}/{x['name']}" for x in metadata.get("ownerReferences", ())), ""
            ),
        )
        with self._lock:
            pods = self._pods.setdefault(metadata["namespace"], {})
            if pods.get(state.uid) != state:
                pods[state.uid] = state
                self._changed[metadata["namespace"]] = time.monotonic()


@contextmanager
def following(admin: Raw) -> Iterator[PodHistory]:
    """Follow the pods of a cluster until the block ends."""
    history = PodHistory(admin)
    thread = threading.Thread(target=history.follow, daemon=True)
    thread.start()
    try:
        yield history
    finally:
        history.end()
