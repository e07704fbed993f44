"""API servers in the process of a test, without a socket: the same ids and chances every time."""

from __future__ import annotations

import random

from sully.api import build_scheme
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates
from sully.machinery.scheme import Scheme
from sully.runtime.clock import Clock
from sully.runtime.ids import Ids
from sully.server.api import Api, Env
from sully.store.base import Store

SCHEME = build_scheme()
REFERENCE = build_scheme(Compat.KUBERNETES)


def embedded(
    store: Store,
    clock: Clock,
    *,
    ids: Ids | None = None,
    gates: Gates | None = None,
    scheme: Scheme = SCHEME,
    strict: bool = False,
) -> Api:
    """Return a server on what a store has."""
    rng = random.Random(1)
    return Api(
        scheme=scheme,
        store=store,
        env=Env(clock, ids or Ids(rng), rng),
        gates=gates,
        compat=Compat.KUBERNETES if strict else Compat.SULLY,
    )
