"""The arguments and flags of `taint`, `untaint` and `plan`: what is tainted, and how."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from sully.cli.client.options import choice_option, class_option, duration_option, seconds
from sully.cli.client.options import options as join
from sully.cli.client.text import did_you_mean
from sully.cli.command import CommandError, Options
from sully.cli.names import CLUSTER_KEYS, DEVICE_KEYS, SUBJECTS, names

if TYPE_CHECKING:
    from sully.domain.planning.taintgrammar import TaintToAdd, TaintToRemove

RATE = 10
"""The default of --rate."""
DEVICE, CLUSTER = "device", "cluster"
ALIASES = {
    DEVICE: (DEVICE, "devices", "dev"),
    CLUSTER: (CLUSTER, "clusters", "managedcluster", "managedclusters", "mcl"),
}
_TAINT_FLAGS = {"--reason": "reason", "--for": "lasts", "--rate": "rate", "--name": "name"}
_DEVICE_FLAGS = {"--class": "device_class", "--cel": "cel"}
_TAINT = "KEY[=VALUE]:EFFECT"
EFFECTS = """\
\b
Effects of device taints:
  None              Informational. Does not affect scheduling or running pods.
  NoSchedule        Pods that do not tolerate the taint are not scheduled to use
                    the device. Running pods are not affected.
  NoExecute         As NoSchedule, and running pods that do not tolerate the
                    taint are evicted.
  PreferNoSchedule  The scheduler prefers other devices. Requires the feature
                    gate SullyPreferNoSchedule.
  NoExecuteWithPodDisruptionBudget
                    As NoExecute, but evictions respect PodDisruptionBudgets.
                    Requires the feature gate
                    SullyNoExecuteWithPodDisruptionBudget.

\b
Effects of cluster taints:
  NoSelect          Placements that do not tolerate the taint do not select the
                    cluster, and lose it if they have.
  PreferNoSelect    Placements prefer other clusters.
  NoSelectIfNew     Placements keep the cluster, but do not newly select it.
"""
"""For help."""


@dataclass(frozen=True, slots=True)
class TaintArgs:
    """The parsed arguments."""

    kind: str
    names: tuple[str, ...]
    """Patterns of devices, or names of clusters."""
    sets: "tuple[TaintToAdd, ...]" = ()
    removes: "tuple[TaintToRemove, ...]" = ()


def parse_taint_args(words: Sequence[str], *, remove: bool = False) -> TaintArgs:
    """Parse `device|cluster NAME... TAINT...`; with `remove` the taints need no dash."""
    from sully.domain.planning.taintgrammar import is_taint

    kind, rest = _kind(words)
    objects = [word for word in rest if not is_taint(word)]
    taints = [word for word in rest if is_taint(word)]
    if remove and objects and not taints:
        # `untaint cluster eu-2 maintenance`: the last word is a key.
        taints = [objects.pop()]
    if remove:
        taints = [taint if taint.endswith("-") else f"{taint}-" for taint in taints]
    if not taints:
        raise CommandError(f"no taint specified: {kind} ... {'KEY' if remove else _TAINT}", code=2)
    return _parsed(kind, objects, taints)


def _kind(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    first = words[0] if words else ""
    for kind, aliases in ALIASES.items():
        if first.lower() in aliases:
            return kind, words[1:]
    if first.lower() in ("node", "nodes", "no"):
        name = words[1] if len(words) > 1 else "NAME"
        raise CommandError(
            f"nodes are tainted with kubectl: kubectl taint node {name} ...\n"
            f"  to taint the devices of a node: {DEVICE} '*/{name}/*'",
            code=2,
        )
    known = [alias for aliases in ALIASES.values() for alias in aliases]
    if not first:
        raise CommandError(f"missing argument: one of {' or '.join(ALIASES)}", code=2)
    hint = did_you_mean(first, known)
    raise CommandError(f'unknown value "{first}" (one of: {", ".join(ALIASES)}){hint}', code=2)


def _parsed(kind: str, objects: Sequence[str], words: Sequence[str]) -> TaintArgs:
    from sully.domain.planning.taintgrammar import (
        CLUSTER_EFFECTS,
        DEVICE_EFFECTS,
        TaintSyntaxError,
        TaintToAdd,
        TaintToRemove,
        parse_taint,
    )

    effects = DEVICE_EFFECTS if kind == DEVICE else CLUSTER_EFFECTS
    try:
        taints = [parse_taint(word, effects) for word in words]
    except TaintSyntaxError as error:
        raise CommandError(str(error), code=2) from error
    sets = tuple(taint for taint in taints if isinstance(taint, TaintToAdd))
    removes = tuple(taint for taint in taints if isinstance(taint, TaintToRemove))
    _refuse_duplicates(sets, removes)
    return TaintArgs(kind, tuple(objects), sets, removes)


def _refuse_duplicates(sets: "Sequence[TaintToAdd]", removes: "Sequence[TaintToRemove]") -> None:
    """Refuse taints that are set twice, or set and removed, as kubectl does."""
    seen: set[tuple[str, str]] = set()
    for taint in sets:
        if (taint.key, taint.effect) in seen:
            raise CommandError(f"duplicate taint {taint.key}:{taint.effect}", code=2)
        seen.add((taint.key, taint.effect))
        if any(removed.matches(taint.key, taint.effect) for removed in removes):
            raise CommandError(f"cannot both set and remove the taint {taint}", code=2)


# -- completion -----------------------------------------------------------------------------------


def complete_taint(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete the arguments: device or cluster, their names, and effects."""
    words = list(ctx.params.get("words") or ())
    if not words:
        return [kind for kind in ALIASES if kind.startswith(incomplete)]
    kind = next((kind for kind, others in ALIASES.items() if words[0].lower() in others), DEVICE)
    key, colon, typed = incomplete.rpartition(":")
    # bash makes a colon a word of its own.
    if incomplete == ":" or words[-1] == ":":
        return _effects(kind, incomplete.removeprefix(":"))
    if colon:
        return [f"{key}:{effect}" for effect in _effects(kind, typed)]
    completions = names(SUBJECTS[kind], incomplete, ctx.params)
    if ctx.info_name == "untaint" and len(words) > 1:
        keys = CLUSTER_KEYS if kind == CLUSTER else DEVICE_KEYS
        completions += names(keys, incomplete, ctx.params)
    return completions


def _effects(kind: str, typed: str) -> list[str]:
    from sully.domain.planning.taintgrammar import CLUSTER_EFFECTS, DEVICE_EFFECTS

    effects = CLUSTER_EFFECTS if kind == CLUSTER else DEVICE_EFFECTS
    return [effect for effect in effects if effect.startswith(typed)]


# -- flags ----------------------------------------------------------------------------------------


def _lifetime(text: str) -> float:
    duration = seconds(text)
    if duration < 1:
        raise click.BadParameter(f'invalid duration "{text}" (1s or more)')
    return duration


def _rate(text: str) -> int:
    if not text.isdecimal() or int(text) > 1000:
        raise click.BadParameter(f'invalid rate "{text}" (1 to 1000, or 0 for no limit)')
    return int(text)


selection_options = join(
    class_option,
    click.option(
        "--cel",
        multiple=True,
        metavar="EXPR",
        help="Only devices for which this CEL expression is true. Can be repeated.",
    ),
    click.option(
        "--selector",
        "-l",
        default="",
        metavar="LABELS",
        help="Label selector to filter clusters by, for example region=eu.",
    ),
)
taint_options = join(
    selection_options,
    click.option(
        "--reason", default="", metavar="TEXT", help="Why the taint is set, for other users."
    ),
    duration_option(
        "--for",
        "lasts",
        type=_lifetime,
        help="Remove the taint after this time, for example 2h.",
    ),
    click.option(
        "--rate",
        type=_rate,
        metavar="N",
        show_default=str(RATE),
        help="Evictions per second, after a burst of 10. 0 means no limit.",
    ),
    click.option(
        "--name", default="", metavar="RULE", show_default="generated", help="Name of the rule."
    ),
    click.option("--overwrite", is_flag=True, help="Allow changing existing taints and rules."),
)
dry_run_option = choice_option(
    "--dry-run",
    choices=("none", "client", "server"),
    flag_value="server",
    is_flag=False,
    metavar="STRATEGY",
    help_="Show the plan and change nothing. With server, the default if no value is given, the"
    " server validates the objects.",
)
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


def refuse_useless_flags(options: Options, args: TaintArgs) -> None:
    flags_set = _flags_set(options)
    if args.kind == CLUSTER:
        flags = flags_set & (_TAINT_FLAGS.keys() | _DEVICE_FLAGS.keys())
        _refuse(flags, "cannot be used with clusters")
        return
    _refuse(flags_set & {"-l"}, "cannot be used with devices; use --class or --cel")
    if not args.sets:
        _refuse(flags_set & _TAINT_FLAGS.keys(), "cannot be used when no taint is set")


def refuse_taint_flags(options: Options) -> None:
    """Refuse the flags of a taint together with files, where the object has these fields."""
    more = {"--overwrite"} if options.overwrite else set()
    _refuse(_flags_set(options) | more, "cannot be used with -f; set it in the file")


def _flags_set(options: Options) -> set[str]:
    return {
        flag
        for flag, name in (_TAINT_FLAGS | _DEVICE_FLAGS | {"-l": "selector"}).items()
        if getattr(options, name, None) not in (None, "", ())
    }


def _refuse(flags: set[str], why: str) -> None:
    if flags:
        raise CommandError(f"{', '.join(sorted(flags))}: {why}", code=2)
