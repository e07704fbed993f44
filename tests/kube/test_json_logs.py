"""`sully controllers --log-format json` on a server that is not ours writes JSON lines only."""

from __future__ import annotations

import json

from kube.process import Foreign
from sully.testing.remote import controllers

LEASE = ("--lease", "default/json-logs")


def test_from_start_to_end(there: Foreign) -> None:
    arguments = ("--log-format", "json", "--metrics-listen", "127.0.0.1:0", *LEASE)
    with controllers(there.kubeconfig, *arguments) as process:
        process.wait_for("leading since")
        assert process.stop() == 0
        process.wait_for('"event":"stopped"')

    entries = [json.loads(line) for line in process.output]
    events = [entry["event"] for entry in entries]
    assert events[0] == "starting"
    assert {"capabilities", "serving metrics", "status"} <= set(events)
    (server,) = (entry for entry in entries if entry["event"] == "capabilities")
    assert server["sully"] is False
    assert {"name", "runs", "reason"} == server["controllers"][0].keys()
