"""Claims and claim templates, which are generated with the other types of the group."""

from sully.api.resource._generated.types import *  # noqa: F403 -- this module exports what is generated
