"""The names of the hub's controllers: identities, field managers and fields of logs."""

from typing import Final

ACCEPTANCE_CONTROLLER: Final = "managed-cluster-controller"
LEASE_CONTROLLER: Final = "managed-cluster-lease-controller"
TAINT_CONTROLLER: Final = "managed-cluster-taint-controller"
SET_CONTROLLER: Final = "managed-cluster-set-controller"
POLICY_CONTROLLER: Final = "cluster-taint-policy-controller"
