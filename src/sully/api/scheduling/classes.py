"""PriorityClasses: names for the priorities of pods."""

from collections.abc import Iterator
from typing import Any

from sully.api.core import generations
from sully.api.core.checks import unchanged
from sully.api.core.columns import AGE, NAME, plain
from sully.api.core.pods.creation.priorities import PREEMPT, SYSTEM_PRIORITIES
from sully.machinery.errors import forbidden
from sully.machinery.fields import FieldError, Path
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

SCHEDULING = "io.k8s.api.scheduling.v1"
_HIGHEST = 1_000_000_000
_SYSTEM = "system-"
_POLICIES = (PREEMPT, "Never")


class PriorityClassStrategy(Strategy, frozen=True):
    """Writes to priority classes; the value of a class is immutable."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in the preemption policy."""
        obj.setdefault("preemptionPolicy", PREEMPT)

    def admit(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
        """Reject a second default."""
        default = ctx.default_priority_class()
        if not obj.get("globalDefault") or default is None:
            return
        name, current = obj["metadata"].get("name", ""), default["metadata"]["name"]
        if old is None or name != current:
            text = f"PriorityClass {current} is already marked as default."
            text = f"{text} Only one default can exist"
            raise forbidden("priorityclasses", "scheduling.k8s.io", name, text)

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Set the first generation."""
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the generation."""
        generations.follow(obj, old, bump=False)

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check that the names and values of the system are not used."""
        name, value = obj["metadata"].get("name", ""), obj["value"]
        if name.startswith(_SYSTEM):
            problem = _not_of_the_system(name, value, default=bool(obj.get("globalDefault")))
            if problem:
                text = f"priority class names with '{_SYSTEM}' prefix are reserved for system use"
                text = f"{text} only. error: {problem}"
                yield Path("metadata").child("name").forbidden(text)
        elif value > _HIGHEST:
            text = f"maximum allowed value of a user defined priority is {_HIGHEST}"
            yield Path("value").forbidden(text)
        if obj["preemptionPolicy"] not in _POLICIES:
            yield Path("preemptionPolicy").not_supported(obj["preemptionPolicy"], _POLICIES)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check that value and policy stay."""
        if obj["value"] != old["value"]:
            yield Path("value").forbidden("may not be changed in an update.")
        policies = (obj["preemptionPolicy"], old.get("preemptionPolicy"))
        yield from unchanged(*policies, Path("preemptionPolicy"))


def _not_of_the_system(name: str, value: int, *, default: bool) -> str:
    expected = SYSTEM_PRIORITIES.get(name)
    if expected is None:
        return f"{name} is not a known system priority class"
    if value != expected:
        return f"value of {name} PriorityClass must be {expected}"
    return f"globalDefault of {name} PriorityClass must be false" if default else ""


PRIORITY_CLASSES = ResourceType(
    group="scheduling.k8s.io",
    kind="PriorityClass",
    plural="priorityclasses",
    singular="priorityclass",
    namespaced=False,
    versions=(Version("v1", SCHEDULING),),
    strategy=PriorityClassStrategy(),
    short_names=("pc",),
    columns=(
        NAME,
        Column("Value", plain(lambda obj: obj["value"]), type="integer", description="Priority."),
        Column(
            "Global-Default",
            plain(lambda obj: bool(obj.get("globalDefault"))),
            type="boolean",
            description="Whether pods without a class get it.",
        ),
        AGE,
        Column(
            "PreemptionPolicy",
            plain(lambda obj: obj.get("preemptionPolicy", "")),
            description="Whether pods of the class may preempt others.",
        ),
    ),
)
