"""Policies that turn conditions of clusters into taints, as frozen values."""

from sully.api.sully._generated.types import *  # noqa: F403 -- this module exports what is generated

POLICY_KIND = "ClusterTaintPolicy"
