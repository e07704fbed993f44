"""What clients of a deprecated version of a custom resource are warned of."""

from typing import Any

import pytest

from sully.api.apiextensions.custom import deprecation_warning

SPEC: dict[str, Any] = {"group": "example.com", "names": {"kind": "Part"}}
OLD: dict[str, Any] = {"name": "v1beta1", "served": True, "deprecated": True}
USUAL = "example.com/v1beta1 Part is deprecated"


def _version(name: str, *, served: bool = True, deprecated: bool = False) -> dict[str, Any]:
    return {"name": name, "served": served, "deprecated": deprecated}


CASES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], str]] = {
    "not deprecated": (OLD | {"deprecated": False}, [_version("v1")], ""),
    "its own text": (OLD | {"deprecationWarning": "Gone soon."}, [_version("v1")], "Gone soon."),
    "no better version": (OLD, [_version("v1alpha1"), _version("other")], USUAL),
    "the best of better versions": (
        OLD,
        [_version("v1beta2"), _version("v2"), _version("v10"), _version("v3alpha1")],
        f"{USUAL}; use example.com/v10 Part",
    ),
    "only versions that are served and not deprecated": (
        OLD,
        [_version("v1beta2"), _version("v2", served=False), _version("v1", deprecated=True)],
        f"{USUAL}; use example.com/v1beta2 Part",
    ),
}


@pytest.mark.parametrize(("version", "others", "want"), CASES.values(), ids=CASES.keys())
def test_warning(version: dict[str, Any], others: list[dict[str, Any]], want: str) -> None:
    assert deprecation_warning(version, SPEC | {"versions": [version, *others]}) == want
