"""An API server in memory, for dry runs where no server can be asked."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from random import Random
from typing import Any

from sully.api import build_scheme
from sully.client.direct import DirectTransport
from sully.client.transport import Kind, Transport
from sully.domain.devices.taints import EFFECTS
from sully.machinery.gates import Gates
from sully.machinery.scheme import Scheme
from sully.runtime.ids import Ids
from sully.server.api import Api, Env
from sully.server.inprocess import InProcess
from sully.server.requests import User
from sully.store.memory import MemoryStore
from sully.views.snapshot.snapshot import StoppedClock

_EFFECT_GATES = tuple(effect.feature_gate for effect in EFFECTS.values() if effect.feature_gate)
"""Gates that are enabled where there is no server: an object that needs one implies it."""


@cache
def _scheme() -> Scheme:
    return build_scheme()


def is_known(kind: Kind[Any]) -> bool:
    """Report whether the server serves a kind."""
    return _scheme().find(kind.group, kind.version, kind.plural) is not None


def local_server(now: datetime) -> Transport:
    """Return a connection to a new server without objects, at a time that does not change."""
    random = Random(0)
    api = Api(
        scheme=_scheme(),
        store=MemoryStore(),
        env=Env(StoppedClock(now), Ids(random), random),
        gates=Gates(dict.fromkeys(_EFFECT_GATES, True)),
    )
    return DirectTransport(InProcess(api, User("plan", ("system:masters",)), agent="sully-plan"))
