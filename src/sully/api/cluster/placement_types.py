"""Placements and their decisions, which are generated with the other types of the group."""

from sully.api.cluster._generated.types import *  # noqa: F403 -- this module exports what is generated
