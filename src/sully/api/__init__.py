"""The kinds, one folder per API group.

Owns: what kinds look like (`*.fields`), their defaults, validation and rules on write.
Never: does I/O, reads a clock, or knows how it is served.
Start at: build_scheme() below, then resource/ (devices), then core/.
"""

import importlib
import pkgutil
from collections.abc import Collection

from msgspec.structs import replace

from sully.machinery.compat import Compat
from sully.machinery.runtimeconfig import RuntimeConfig
from sully.machinery.scheme import Scheme
from sully.machinery.strategy import ResourceType

ALL_SERVED = RuntimeConfig()


def build_scheme(compat: Compat = Compat.SULLY, *, runtime: RuntimeConfig = ALL_SERVED) -> Scheme:
    """Return the scheme with the tables and resources of every group folder.

    What a group adds to the API of Kubernetes or OCM is its SUPERSET, SUPERSET_KINDS and
    SUPERSET_VERSIONS. `runtime` switches single versions off.
    """
    scheme, with_ours = Scheme(), compat.serves_sully_kinds
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)
    groups = [importlib.import_module(f"{__name__}.{name}") for name in names]
    # Tables first: groups refer to each other's types.
    for group in groups:
        group.load_tables(scheme.tables)
        if not with_ours:
            scheme.tables.leave_out(getattr(group, "SUPERSET", {}))
    for group in groups:
        ours = () if with_ours else getattr(group, "SUPERSET_KINDS", ())
        versions = {} if with_ours else getattr(group, "SUPERSET_VERSIONS", {})
        for resource in group.resources():
            if resource.kind not in ours:
                remaining = runtime.applied(_without(resource, versions.get(resource.kind, ())))
                if remaining is not None:
                    listed = bool(remaining.refused) and not compat.hides_refused_subresources
                    scheme.add(replace(remaining, lists_refused=True) if listed else remaining)
    runtime.check(scheme.resources())
    return scheme


def _without(resource: ResourceType, names: Collection[str]) -> ResourceType:
    remaining = tuple(version for version in resource.versions if version.name not in names)
    return replace(resource, versions=remaining) if names else resource
