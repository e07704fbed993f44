"""The registry of kinds."""

import itertools

import pytest

from sully.api import build_scheme
from sully.machinery.compat import Compat
from sully.machinery.scheme import Scheme, version_priority
from sully.machinery.strategy import ResourceType, Strategy, Version


def resource(plural: str, *versions: Version, group: str = "g", storage: str = "") -> ResourceType:
    kind = plural.title().removesuffix("s")
    return ResourceType(
        group, kind, plural, kind.lower(), True, versions, Strategy(), storage=storage
    )


def test_served_in_all_enabled_versions() -> None:
    scheme = Scheme()
    things = resource("things", Version("v1", "p"), Version("v1beta1", "p", enabled=False))
    scheme.add(things)

    assert scheme.find("g", "v1", "things") is things
    assert scheme.find("g", "v1beta1", "things") is None
    assert scheme.find("other", "v1", "things") is None
    assert scheme.by_kind("g", "v1", "Thing") is things
    assert scheme.by_kind("g", "v1beta1", "Thing") is None
    assert (scheme.serves("g", "v1"), scheme.serves("g", "v1beta1")) == (True, False)


def test_a_second_view_does_not_own_what_is_stored() -> None:
    scheme = Scheme()
    things = resource("things", Version("v1", "p"))
    views = resource("things", Version("v1", "p"), group="other", storage="g/things")
    scheme.add(things)
    scheme.add(views)

    assert views.storage_key == things.storage_key == "g/things"
    assert scheme.stored("g/things") is things
    assert scheme.find("other", "v1", "things") is views


def test_versions_in_order_of_preference() -> None:
    scheme = Scheme()
    scheme.add(resource("as", Version("v1beta1", "p"), Version("v1", "p")))
    scheme.add(resource("bs", Version("v2", "p"), Version("v1", "p"), Version("v1alpha3", "p")))

    assert scheme.groups() == {"g": ["v2", "v1", "v1beta1", "v1alpha3"]}


def test_priority_is_the_same_from_every_order() -> None:
    ordered = ["v10", "v2", "v1", "v2beta1", "v1beta1", "v1alpha3", "early", "later"]

    for shuffled in itertools.permutations(ordered):
        assert sorted(shuffled, key=version_priority) == ordered


def test_schema_of_what_is_not_served() -> None:
    with pytest.raises(KeyError, match="things is not served in v9"):
        Scheme().schema(resource("things", Version("v1", "p")), "v9")


def test_every_registered_kind_can_be_found_and_has_a_table() -> None:
    scheme = build_scheme()
    for resource in scheme.resources():
        for version in resource.versions:
            if version.enabled:
                assert scheme.find(resource.group, version.name, resource.plural) is resource
                assert scheme.schema(resource, version.name).name == resource.kind


def test_kubernetes_has_fewer_kinds_and_no_others() -> None:
    ours = {(r.group, r.plural) for r in build_scheme().resources()}
    reference = {(r.group, r.plural) for r in build_scheme(Compat.KUBERNETES).resources()}

    assert reference <= ours
