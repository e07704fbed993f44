"""PodTemplates: templates that are stored for later use."""

from collections.abc import Iterator
from typing import Any

from sully.api.core import generations
from sully.api.core.checks import same
from sully.api.core.columns import NAME, format_labels, plain
from sully.api.core.pods.creation.defaults import default_spec
from sully.api.core.pods.spec.validation import validate_template
from sully.api.core.pods.warnings import spec_warnings
from sully.machinery.fields import FieldError, Path
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

_TEMPLATE = Path("template")


class PodTemplateStrategy(Strategy, frozen=True):
    """Writes to templates."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in the spec of the pods."""
        default_spec(obj["template"]["spec"])

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Set the first generation."""
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Count the change."""
        generations.follow(obj, old, bump=not same(obj["template"], old["template"]))

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the template."""
        return validate_template(obj["template"], _TEMPLATE)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new template."""
        return validate_template(obj["template"], _TEMPLATE)

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterator[str]:
        """Warn about the template."""
        return spec_warnings(obj["template"]["spec"], _TEMPLATE.child("spec"))


def _containers(field: str) -> Any:
    return plain(
        lambda obj: ",".join(
            container.get(field, "") for container in obj["template"]["spec"]["containers"] or ()
        )
    )


def _labels(obj: Obj) -> str:
    return format_labels(obj["template"]["metadata"].get("labels"))


POD_TEMPLATES = ResourceType(
    group="",
    kind="PodTemplate",
    plural="podtemplates",
    singular="podtemplate",
    namespaced=True,
    versions=(Version("v1", "io.k8s.api.core.v1", delete_returns_object=True),),
    strategy=PodTemplateStrategy(),
    columns=(
        NAME,
        Column("Containers", _containers("name"), description="Names of the containers."),
        Column("Images", _containers("image"), description="Images of the containers."),
        Column("Pod Labels", plain(_labels), description="Labels of the pods."),
    ),
)
