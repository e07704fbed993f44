"""Device classes, and the settings for drivers that classes and claims carry."""

from typing import Any

from sully.api.resource.checks import Errors, Options, validate_declared_items
from sully.api.resource.selectors import validate_selectors
from sully.api.resource.types import DeviceClassSpec, OpaqueDeviceConfiguration
from sully.api.resource.validation.names import validate_declared_driver_name
from sully.machinery.declared import declared
from sully.machinery.fields import Path
from sully.machinery.formats.names import label_key_problems
from sully.machinery.serialization.gotext import compact_json

CONFIG_MAX = 32
PARAMETERS_MAX = 10 * 1024


def validate_class_spec(
    spec: DeviceClassSpec, old: DeviceClassSpec | None, at: Path, rules: Options
) -> Errors:
    """Yield everything wrong with a class; unchanged expressions are not compiled again."""
    same_selectors = old is not None and old.selectors == spec.selectors
    yield from validate_selectors(
        spec.selectors, at.child("selectors"), rules.as_stored(same_selectors)
    )
    same_config = rules.as_stored(old is not None and old.config == spec.config)
    yield from validate_declared_items(
        spec.config,
        CONFIG_MAX,
        lambda config, at: validate_configuration(config.opaque, at, same_config),
        at.child("config"),
    )
    if spec.extended_resource_name is not None:
        name_at = at.child("extendedResourceName")
        yield from declared(_extended_resource_name(spec.extended_resource_name, name_at))


def _extended_resource_name(name: str, at: Path) -> Errors:
    if "/" not in name:
        yield at.invalid(
            name, "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
        )
    elif "kubernetes.io/" in name:
        yield at.invalid(name, 'must not have "kubernetes.io/" domain')
    if name.startswith("requests."):
        yield at.invalid(name, 'must not have "requests." prefix')
    # Quotas prefix the name, and the result must still be a legal one.
    for text in label_key_problems(f"requests.{name}"):
        yield at.invalid(name, text)


def validate_configuration(
    opaque: OpaqueDeviceConfiguration | None, at: Path, rules: Options
) -> Errors:
    """Check settings for a driver: its name, and that they are an object of a limited size."""
    at = at.child("opaque")
    if opaque is None:
        yield at.required()
        return
    # The versions declare the same in another order.
    length_first = rules.version in ("v1beta1", "v1beta2")
    yield from declared(
        validate_declared_driver_name(opaque.driver, at.child("driver"), length_first=length_first)
    )
    yield from validate_raw(
        opaque.parameters, at.child("parameters"), None if rules.stored else PARAMETERS_MAX
    )


def validate_raw(value: Any, at: Path, limit: int | None) -> Errors:
    """Check opaque data: an object, and not too large."""
    if value is None:
        yield at.required()
    elif limit is not None and len(compact_json(value).encode()) > limit:
        yield at.too_long(limit)
    elif not isinstance(value, dict):
        yield at.invalid("<value omitted>", "must be a valid JSON object")
