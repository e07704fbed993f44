"""Device classes."""

from typing import Any

import pytest

from api.resource.bodies import KEY_TEXT, class_body
from api.resource.writing import Writer

EXTENDED: dict[str, tuple[str, list[str]]] = {
    "fine": ("example.com/gpu", []),
    "no domain": (
        "gpu",
        ["\"gpu\": a name must be a domain-prefixed path, such as 'example.com/my-prop'"],
    ),
    "not ours": (
        "x.kubernetes.io/gpu",
        ['"x.kubernetes.io/gpu": must not have "kubernetes.io/" domain'],
    ),
    "quota": ("requests.x/gpu", ['"requests.x/gpu": must not have "requests." prefix']),
    "bad": ("example.com/!", [f'"example.com/!": {KEY_TEXT}']),
}


@pytest.mark.parametrize(("name", "want"), EXTENDED.values(), ids=EXTENDED.keys())
def test_extended_resource_name(name: str, want: list[str]) -> None:
    got = Writer().create(class_body(extendedResourceName=name))

    assert got.texts == [f"spec.extendedResourceName: Invalid value: {text}" for text in want]


def test_a_broken_selector_may_stay_but_not_come() -> None:
    old = Writer().read(class_body("nope("))

    assert Writer().update(class_body("nope("), old).texts == []
    got = Writer().update(class_body("true", "nope("), old).texts
    assert len(got) == 1
    assert got[0].startswith(
        'spec.selectors[1].cel.expression: Invalid value: "nope(": compilation failed: ERROR:'
    )


def test_large_parameters_may_stay_but_not_come() -> None:
    def config(**parameters: Any) -> dict[str, Any]:
        return class_body(config=[{"opaque": {"driver": "d", "parameters": parameters}}])

    large = config(x="y" * 10240)

    assert Writer().update(large, Writer().read(large)).texts == []
    assert Writer().update(large, Writer().read(config())).texts == [
        "spec.config[0].opaque.parameters: Too long: may not be more than 10240 bytes"
    ]


def test_a_long_driver_name_is_counted_in_characters() -> None:
    name = "\u00e9" * 64

    first, second = Writer().create(_with_driver(name)).texts

    assert first.startswith(f'spec.config[0].opaque.driver: Invalid value: "{name}": an RFC 1123')
    assert second == "spec.config[0].opaque.driver: Too long: may not be more than 63 characters"


def _with_driver(name: str) -> dict[str, Any]:
    return class_body(config=[{"opaque": {"driver": name, "parameters": {}}}])


def test_generation() -> None:
    old = Writer().create(class_body("true")).obj

    assert old["metadata"]["generation"] == 1
    assert Writer().update(class_body("true"), old).obj["metadata"]["generation"] == 1
    assert Writer().update(class_body("false"), old).obj["metadata"]["generation"] == 2
