"""Devices, slices, claims, classes, taint rules and patches as frozen values, in the shape of v1.

Controllers, views and domain read these; validation does too. They are generated from the tables
(`*.fields`), which describe every field. Amounts stay texts in canonical form:
`sully.machinery.formats.quantity` reads them.
"""

from sully.api.core._generated.types import *  # noqa: F403 -- this module exports what is generated
from sully.api.resource._generated.types import *  # noqa: F403 -- as above

GROUP = "resource.k8s.io"
