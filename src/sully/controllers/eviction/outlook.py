"""What both controllers of this folder read, and how they are set up."""

from __future__ import annotations

from dataclasses import dataclass

from sully.controllers.eviction.records import Records
from sully.controllers.eviction.settings import EvictionOptions
from sully.runtime.clock import Clock
from sully.views.devices.exposures import Exposures


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The world as eviction sees it."""

    exposures: Exposures
    records: Records
    clock: Clock
    options: EvictionOptions
