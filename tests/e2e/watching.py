"""Waiting for a collection to be as wanted, by watching it: nothing sleeps, nothing polls."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from e2e.raw import Raw

Named = dict[str, dict[str, Any]]
"""Objects by their names."""


def until(admin: Raw, path: str, done: Callable[[Named], bool], **selectors: str) -> Named:
    """Follow a collection, or what is selected of it, until it is as wanted; return it."""
    query = urlencode(selectors)
    while True:
        listed = admin.request("GET", f"{path}?{query}").json()
        results: Named = {item["metadata"]["name"]: item for item in listed["items"]}
        version = listed["metadata"]["resourceVersion"]
        if done(results):
            return results
        # A watch that breaks off is restarted; the time limit is that of a read.
        with suppress(http.client.IncompleteRead, ConnectionError):
            if _follow(
                admin, f"{path}?{query}&watch=true&resourceVersion={version}", results, done
            ):
                return results


def running(count: int) -> Callable[[Named], bool]:
    """Return a condition for `until`: that there are so many pods, and all are running."""

    def check(pods: Named) -> bool:
        phases = [pod["status"].get("phase") for pod in pods.values()]
        return phases.count("Running") == count == len(phases)

    return check


def left(node: str) -> Callable[[Named], bool]:
    """Return a condition for `until`: that no pod stays on a node."""

    def check(pods: Named) -> bool:
        staying = [pod for pod in pods.values() if "deletionTimestamp" not in pod["metadata"]]
        return node not in {pod["spec"].get("nodeName") for pod in staying}

    return check


def _follow(admin: Raw, path: str, result: Named, done: Callable[[Named], bool]) -> bool:
    with admin.open("GET", path) as watch:
        while line := watch.readline():
            event = json.loads(line)
            if event["type"] == "ERROR":
                # On a slow machine it may fall behind what the server records.
                assert event["object"]["code"] == 410, event
                return False
            name = event["object"]["metadata"]["name"]
            result[name] = event["object"]
            if event["type"] == "DELETED":
                del result[name]
            if done(result):
                return True
    return False
