"""What the controllers beside a server asked of it: read from the server's audit log.

`follow` reads the log of one server when it has ended, and fails if its controllers met a refusal
or if anybody else acted as one. What they used is kept for the end of the run, in the folder that
`SULLY_TRAIL` names, where rights.py is held against it: the processes of a run share that folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from sully.server.authorization.policy.components import CONTROLLERS

FOLDER = "SULLY_TRAIL"
USER = "system:serviceaccount:sully-system:sully-controllers"
_MACHINES = {"simulated-clusters", "simulated-nodes"}
"""Not controllers but what these look after; they are in the server, wherever those are."""
NEVER = {
    "system:kube-controller-manager",
    "system:kube-scheduler",
    *(f"system:serviceaccount:kube-system:{name}" for name in CONTROLLERS.keys() - _MACHINES),
}
"""As whom controllers act that are inside."""


class Use(NamedTuple):
    """Something that was asked for: by which controller, and what."""

    agent: str
    verb: str
    group: str
    resource: str  # with the subresource


def follow(log: Path) -> None:
    """Read what happened on a server; fail if something did that must not, keep the rest."""
    events = [json.loads(line) for line in log.read_text().splitlines()]
    wrong = list(_wrong(events))
    assert not wrong, "\n".join(wrong)
    used = {_use(event) for event in events if event["user"].get("username") == USER}
    assert used, "the audit log shows nothing of the controllers"
    if folder := os.environ.get(FOLDER):
        (Path(folder) / f"{uuid4()}.json").write_text(json.dumps(sorted(used)))


def _wrong(events: Iterable[dict[str, Any]]) -> Iterable[str]:
    for event in events:
        name = event["user"].get("username")
        what = f"{event['verb']} {event.get('objectRef') or event.get('requestURI')}"
        decision = event.get("annotations", {}).get("authorization.k8s.io/decision")
        # A 403 can also mean that a namespace is being emptied.
        if name == USER and (decision != "allow" or event["responseStatus"]["code"] == 401):
            yield f"refused: {what}"
        if name in NEVER:
            yield f"{name} acted, which is not beside the server: {what}"


def _use(event: dict[str, Any]) -> Use:
    reference = event["objectRef"]
    parts = (reference["resource"], reference.get("subresource"))
    agent = event.get("userAgent", "").partition("/")[0]
    resource = "/".join(part for part in parts if part)
    return Use(agent, event["verb"], reference.get("apiGroup", ""), resource)


def recorded_uses(folder: Path) -> set[Use]:
    """Return what was used in a whole run."""
    return {Use(*use) for path in folder.glob("*.json") for use in json.loads(path.read_text())}
