"""What commands can be asked about, under all the names that people have for it.

People write `rule a`, `rule/a` as our tables do, or `devicetaintrule.resource.k8s.io/a` as
`kubectl get -o name` does, and mean the same.
"""

ALIASES = {
    "pod": ("po", "pods"),
    "claim": ("claims", "resourceclaim", "resourceclaims"),
    "device": ("dev", "devices"),
    "rule": ("rules", "devicetaintrule", "devicetaintrules"),
    "patch": ("patches", "resourceslicepatch", "resourceslicepatches"),
    "placement": ("placements",),
    "cluster": ("clusters", "managedcluster", "managedclusters", "mcl"),
}


class Kinds(tuple[str, ...]):
    """What shells offer for a kind; what else may stand there, KIND/NAME, is read by `named`."""

    __slots__ = ()

    def __contains__(self, word: object) -> bool:
        return True


def named(kind: str, name: str = "") -> tuple[str, str]:
    """Return the kind and the name that somebody means; a kind that nobody knows as it is."""
    if not name:
        kind, _, name = kind.partition("/")
    word = kind.lower().partition(".")[0]
    for known, others in ALIASES.items():
        if word in (known, *others):
            return known, name
    return kind, name


def rule_named(text: str) -> str:
    """Return the name of a rule, whatever stands before it."""
    kind, name = named(text)
    return name if kind == "rule" and name else text
