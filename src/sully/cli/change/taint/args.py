"""The arguments and flags of `taint`, `untaint` and `plan`: what is tainted, and how."""

from collections.abc import Sequence
from textwrap import indent
from typing import TYPE_CHECKING

import click
import msgspec
from msgspec.structs import replace

from sully.cli.client.options import choice_option, duration_option, seconds, whole_number
from sully.cli.client.options import options as join
from sully.cli.command import CommandError, Options
from sully.cli.names import CLUSTER_KEYS, DEVICE_KEYS, SUBJECTS, names
from sully.cli.output.text import did_you_mean
from sully.cli.selection.args import (
    DEVICE,
    DEVICE_KINDS,
    SelectionArgs,
    allow_missing_option,
    instead,
    kind_named,
    read_selection,
    selection_options,
)

if TYPE_CHECKING:
    from sully.api.resource.eviction_rate import EvictionRate
    from sully.domain.planning.rules.taint_grammar import TaintToAdd, TaintToRemove

RATE = "10"
"""The default of --rate."""
CLUSTER = "cluster"
ALIASES = {
    **DEVICE_KINDS,
    CLUSTER: (CLUSTER, "clusters", "managedcluster", "managedclusters", "mcl"),
}
_TAINT_FLAGS = {
    "--reason": "reason",
    "--for": "lasts",
    "--rate": "rate",
    "--burst": "burst",
    "--name": "name",
}
_CLUSTER_FLAGS = {"--reason", "--for"}
_DEVICE_FLAGS = {
    "--class": "classes",
    "--cel": "cel",
    "--uuid": "uuid",
    "--pci": "pci",
    "--allow-missing": "allow_missing",
}
_TAINT = "KEY[=VALUE]:EFFECT"
_DEVICE_EFFECTS = """\
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
"""
_CLUSTER_EFFECTS = """\
\b
Effects of cluster taints:
  NoSelect          Placements that do not tolerate the taint do not select the
                    cluster, and lose it if they have.
  PreferNoSelect    Placements prefer other clusters, and lose the
                    cluster if they get enough others.
  NoSelectIfNew     Placements keep the cluster, but do not newly select it.
"""
EFFECTS_HELP = f"{_DEVICE_EFFECTS}\n{_CLUSTER_EFFECTS}"
"""For help."""


class TaintArgs(msgspec.Struct, frozen=True):
    """The parsed arguments."""

    kind: str
    names: tuple[str, ...]
    """Names of devices, nodes, classes or clusters."""
    sets: "tuple[TaintToAdd, ...]" = ()
    removes: "tuple[TaintToRemove, ...]" = ()

    def selection(self, options: Options) -> SelectionArgs:
        """Return the devices to taint; fail if none are specified."""
        return read_selection(options, self.kind, self.names)


_PREVIEWS = {
    name: f"\n  to preview it:  sully {name} ... --dry-run"
    for name in ("cordon", "drain", "uncordon")
}
"""What to use instead of `sully plan COMMAND`."""


def parse_taint_args(arguments: Sequence[str], *, remove: bool = False) -> TaintArgs:
    """Parse `device|cluster NAME... TAINT...`; with `remove` the taints need no dash."""
    from sully.domain.planning.rules.taint_grammar import is_taint

    kind, rest = _kind(arguments)
    objects = [word for word in rest if not is_taint(word)]
    taints = [word for word in rest if is_taint(word)]
    if remove and objects and not taints:
        # `untaint cluster eu-2 maintenance`: the last argument is a key.
        taints = [objects.pop()]
    if remove:
        taints = [taint if taint.endswith("-") else f"{taint}-" for taint in taints]
    if not taints:
        text = f"no taint specified: {kind} ... {'KEY' if remove else _TAINT}"
        if not remove and len(objects) > 1:
            text = f'no taint specified: "{objects[-1]}" has no effect ({_TAINT})'
            text = f"{text}\n{_meanings(kind)}"
        raise CommandError(text, code=2)
    return _parsed(kind, objects, taints)


def _kind(arguments: Sequence[str]) -> tuple[str, Sequence[str]]:
    from sully.domain.planning.rules.taint_grammar import is_taint

    first = arguments[0] if arguments else ""
    for kind, aliases in ALIASES.items():
        if first.lower() in aliases:
            return kind, arguments[1:]
    if (printed := kind_named(first.partition("/")[0])) is not None:
        # KIND/NAME, as `kubectl get -o name` prints it.
        return printed, arguments
    known = [alias for aliases in ALIASES.values() for alias in aliases]
    if not first:
        raise CommandError(f"missing argument: one of {', '.join(ALIASES)}", code=2)
    hint = did_you_mean(first, known)
    if not hint:
        words = [word for word in arguments if not is_taint(word)]
        hint = _PREVIEWS.get(first) or instead(words or arguments)
    raise CommandError(f'unknown value "{first}" (one of: {", ".join(ALIASES)}){hint}', code=2)


def _parsed(kind: str, objects: Sequence[str], arguments: Sequence[str]) -> TaintArgs:
    from sully.domain.planning.rules.taint_grammar import (
        CLUSTER_EFFECTS,
        DEVICE_EFFECTS,
        TaintEffectError,
        TaintSyntaxError,
        TaintToAdd,
        TaintToRemove,
        parse_taint,
    )

    effects = CLUSTER_EFFECTS if kind == CLUSTER else DEVICE_EFFECTS
    try:
        taints = [parse_taint(word, effects) for word in arguments]
    except TaintEffectError as error:
        raise CommandError(f"{error}\n{_meanings(kind)}", code=2) from error
    except TaintSyntaxError as error:
        raise CommandError(str(error), code=2) from error
    sets = tuple(taint for taint in taints if isinstance(taint, TaintToAdd))
    removes = tuple(taint for taint in taints if isinstance(taint, TaintToRemove))
    _refuse_duplicates(sets, removes)
    if kind != CLUSTER:
        _refuse_invalid(sets)
    return TaintArgs(kind, tuple(objects), sets, removes)


def _meanings(kind: str) -> str:
    """Return what the effects mean, to be shown below an error."""
    meanings = _CLUSTER_EFFECTS if kind == CLUSTER else _DEVICE_EFFECTS
    return indent(meanings.removeprefix("\b\n").rstrip(), "  ")


def _refuse_invalid(sets: "Sequence[TaintToAdd]") -> None:
    """Refuse keys and values that no server accepts: it would name a rule that nobody has typed."""
    from sully.machinery.formats.names import label_key_problems, label_value_problems

    for taint in sets:
        problems = [f'key "{taint.key}": {text}' for text in label_key_problems(taint.key)]
        if taint.value:
            values = label_value_problems(taint.value)
            problems += [f'value "{taint.value}": {text}' for text in values]
        if problems:
            raise CommandError(f'invalid taint "{taint}": {"; ".join(problems)}', code=2)


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
    arguments = list(ctx.params.get("arguments") or ())
    if not arguments:
        return [kind for kind in ALIASES if kind.startswith(incomplete)]
    kind = next(
        (kind for kind, others in ALIASES.items() if arguments[0].lower() in others), DEVICE
    )
    key, colon, typed = incomplete.rpartition(":")
    # bash makes a colon an argument of its own.
    if incomplete == ":" or arguments[-1] == ":":
        return _effects(kind, incomplete.removeprefix(":"))
    if colon:
        return [f"{key}:{effect}" for effect in _effects(kind, typed)]
    completions = names(SUBJECTS[kind], incomplete, ctx.params)
    if ctx.info_name == "untaint" and len(arguments) > 1:
        keys = CLUSTER_KEYS if kind == CLUSTER else DEVICE_KEYS
        completions += names(keys, incomplete, ctx.params)
    return completions


def _effects(kind: str, typed: str) -> list[str]:
    from sully.domain.planning.rules.taint_grammar import CLUSTER_EFFECTS, DEVICE_EFFECTS

    effects = CLUSTER_EFFECTS if kind == CLUSTER else DEVICE_EFFECTS
    return [effect for effect in effects if effect.startswith(typed)]


# -- flags ----------------------------------------------------------------------------------------


def _lifetime(text: str) -> float:
    duration = seconds(text)
    if duration < 1:
        raise click.BadParameter(f'invalid duration "{text}" (1s or more)')
    return duration


def read_rate(text: str) -> str:
    """Check a rate; for `type=` of a flag. 0 means no limit."""
    from sully.api.resource.eviction_rate import parse_rate

    try:
        return text if text == "0" else str(parse_rate(text))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def requested_rate(options: Options) -> "EvictionRate | None":
    """Return the rate of --rate and --burst; None: no limit."""
    from sully.api.resource.eviction_rate import parse_rate

    text = options.rate or RATE
    if text == "0":
        if options.burst is not None:
            raise CommandError("--burst requires a --rate other than 0", code=2)
        return None
    rate = parse_rate(text)
    return rate if options.burst is None else replace(rate, burst=options.burst)


rate_option = click.option(
    "--rate",
    type=read_rate,
    metavar="N[/PERIOD]",
    show_default=RATE,
    help="Evictions per second, or per period: 10/m, 1/5m. 0 means no limit.",
)
burst_option = click.option(
    "--burst",
    type=whole_number(1, 1000),
    metavar="N",
    show_default="one period of --rate, at most 10",
    help="How many pods may be evicted immediately, before the rate limits them.",
)
taint_options = join(
    selection_options,
    allow_missing_option,
    click.option(
        "--reason", default="", metavar="TEXT", help="Why the taint is set, for other users."
    ),
    duration_option(
        "--for",
        "lasts",
        type=_lifetime,
        help="Remove the taint after this time, for example 2h.",
    ),
    rate_option,
    burst_option,
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
        flags = flags_set & (_TAINT_FLAGS.keys() - _CLUSTER_FLAGS | _DEVICE_FLAGS.keys())
        _refuse(flags, "cannot be used with clusters")
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
        if getattr(options, name, None) not in (None, "", (), False)
    }


def _refuse(flags: set[str], why: str) -> None:
    if flags:
        raise CommandError(f"{', '.join(sorted(flags))}: {why}", code=2)
