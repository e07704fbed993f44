"""How the words of a command line are taken: in any order, and with an answer to a slip.

argparse alone wants flags before or behind all words, and answers a slip with a page of usage.
`main.py` makes the parsers; completion.py reads them.
"""

import argparse
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NoReturn

BEFORE = ("--kubeconfig", "--context", "--as", "--as-group", "-n", "--namespace", "-o", "--output")
"""Flags that may stand before the command, as kubectl takes them there; each has a value."""


_PROGRAMS = "; programs read '-o json'"
_CHOOSING = "; 'jq' can choose from '-o json'"
_KUBECONFIG = "; a kubeconfig says that"
_BUILDING = "; 'kubectl kustomize DIR | sully plan -f -' shows what it would do"
_INSTEAD = {
    "-l": _CHOOSING,
    "--selector": _CHOOSING,
    "--field-selector": _CHOOSING,
    "--sort-by": _CHOOSING,
    "--no-headers": _PROGRAMS,
    "--template": _PROGRAMS,
    "--server": _KUBECONFIG,
    "--token": _KUBECONFIG,
    "--user": _KUBECONFIG,
    "-k": _BUILDING,
    "--kustomize": _BUILDING,
    "-f": "; 'kubectl apply' takes files, and 'sully plan' shows what they would do",
    "--filename": "; 'kubectl apply' takes files, and 'sully plan' shows what they would do",
}
"""What to do where kubectl has a flag that we do not have."""
_FORMS = ("name", "jsonpath", "custom-columns", "go-template")
"""How kubectl takes parts out of objects."""


class Parser(argparse.ArgumentParser):
    """A parser that says in two lines what is wrong, and what was probably meant."""

    def error(self, message: str) -> NoReturn:
        """End the program: the words make no sense."""
        self.exit(2, f"{self.prog}: {message}\n  '{self.prog} --help' tells what there is\n")

    def _get_values(self, action: argparse.Action, arg_strings: Any) -> Any:
        if action.option_strings and arg_strings == ["--"]:
            # argparse takes `--flag=--` for the end of all flags, and then for no value at all.
            raise argparse.ArgumentError(action, "expected one argument")
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        known = action.choices
        if known is None or value in known:
            return
        if isinstance(action, argparse._SubParsersAction):
            text = f"there is no command {value!r}{meant(value, list(known))}"
            raise argparse.ArgumentError(None, text)
        names = [str(each) for each in known if each != ""]
        instead = _PROGRAMS if "json" in names and value.startswith(_FORMS) else ""
        text = f"{value!r} is none of {', '.join(names)}{meant(value, names) or instead}"
        raise argparse.ArgumentError(action, text)


class CommandParser(Parser):
    """One command; flags may stand anywhere, also between `pod` and its name."""

    _mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Take flags and names in any order; refuse what nobody knows."""
        if self._mixing or self._takes_the_rest():
            return super().parse_known_args(args, namespace)
        self._mixing = True
        try:
            found, unknown = self.parse_known_intermixed_args(self._whole(args), namespace)
        finally:
            self._mixing = False
        if unknown:
            self.error(self._refusal(unknown))
        return found, unknown

    def _takes_the_rest(self) -> bool:
        return any(each.nargs == argparse.REMAINDER for each in self._actions)

    def _whole(self, words: Iterable[str]) -> list[str]:
        """Write out flags whose value may be left out: the next word is not theirs."""
        bare = {
            flag: f"{flag}={action.const}"
            for action in self._actions
            if action.nargs == argparse.OPTIONAL
            for flag in action.option_strings
        }
        return [bare.get(each, each) for each in words]

    def _refusal(self, unknown: Sequence[str]) -> str:
        flag = next((each.partition("=")[0] for each in unknown if each.startswith("-")), "")
        if not flag:
            return f"there is a word too many: {' '.join(unknown)}"
        flags = [each for action in self._actions for each in action.option_strings]
        return f"there is no flag {flag}{meant(flag, flags) or _INSTEAD.get(flag, '')}"


def meant(word: Any, known: Collection[Any]) -> str:
    """Ask whether something was meant that looks alike; empty if nothing does."""
    from difflib import get_close_matches

    alike = {str(each).lower(): str(each) for each in known}
    found = get_close_matches(str(word).lower(), alike, n=1, cutoff=0.75)
    return f"; did you mean {alike[found[0]]}?" if found else ""


def help_first(words: Sequence[str]) -> list[str]:
    """Take `help COMMAND` for `COMMAND --help`, and `help` alone for `--help`."""
    if not words or words[0] != "help":
        return list(words)
    return [*words[1:2], "--help"]


def command_first(words: Sequence[str], commands: Collection[str]) -> list[str]:
    """Put the command before flags that stand in front of it."""
    at = behind_flags(words)
    if not at or at >= len(words) or words[at] not in commands:
        return list(words)
    return [words[at], *words[:at], *words[at + 1 :]]


def behind_flags(words: Sequence[str]) -> int:
    """Return where a command may stand: behind flags that come before it, and their values.

    That is one too far where the last of them lacks its value.
    """
    at = 0
    while at < len(words) and words[at].partition("=")[0] in BEFORE:
        at += 1 if "=" in words[at] else 2
    return at
