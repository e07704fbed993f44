"""The admissionregistration group: policies that accept or reject writes by expressions.

Owns: the kinds ValidatingAdmissionPolicy and ValidatingAdmissionPolicyBinding.
Never: evaluates a policy (`domain/admission`, `server/admission`).
Start at: PolicyStrategy in policies.py.
"""

from collections.abc import Iterable

from sully.api.admissionregistration.types import ADMISSION
from sully.api.tables import load
from sully.machinery.schema import Tables
from sully.machinery.strategy import ResourceType


def load_tables(tables: Tables) -> None:
    """Load the types of the group."""
    load(tables, __name__, ADMISSION, "admissionregistration.fields")


def resources() -> Iterable[ResourceType]:
    """Return the resources of the group."""
    # Late: only a server needs the strategies.
    from sully.api.admissionregistration.bindings import BINDINGS
    from sully.api.admissionregistration.policies import POLICIES

    return (POLICIES, BINDINGS)
