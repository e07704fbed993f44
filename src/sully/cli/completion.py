"""`sully completion`: what lets a shell complete commands, flags and their values.

The scripts ask the program itself (`sully completion complete -- WORDS`), so they never go stale;
it reads the same parsers that the commands use, and imports only the command at hand. Names of
objects come from the server (names.py). kubectl asks through a program called
kubectl_complete-sully.
"""

import argparse
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

_EPILOG = """\
examples:
  source <(sully completion bash)                       in ~/.bashrc
  source <(sully completion zsh)                        in ~/.zshrc, after compinit
  sully completion fish > ~/.config/fish/completions/sully.fish

'kubectl sully' is completed by kubectl's own completion (since 1.26), where kubectl_complete-sully
is in PATH: it is installed beside this program.
"""
_BASH = """\
_sully() {
  local IFS=$'\\n'
  COMPREPLY=($(sully completion complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  if [[ "${COMPREPLY[0]}" == */ ]]; then compopt -o nospace; fi
}
complete -o default -F _sully sully
"""
_ZSH = """\
#compdef sully
_sully() {
  local -a found whole parts
  found=("${(@f)$(sully completion complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -z "${found[1]}" ]]; then _files; return; fi
  parts=(${(M)found:#*/})
  whole=(${found:#*/})
  (( ${#parts} )) && compadd -S '' -a parts
  (( ${#whole} )) && compadd -a whole
}
compdef _sully sully
"""
_FISH = """\
function __sully_complete
  set -l words (commandline -opc) (commandline -ct)
  sully completion complete -- $words[2..-1] 2>/dev/null
end
complete -c sully -a '(__sully_complete)'
"""
_UNSAID = ("", "complete", "list")
"""Values that nobody has to write."""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Print a script for a shell, which then completes commands and flags."
    parser.epilog = _EPILOG
    parser.add_argument(
        "shell",
        choices=(*SCRIPTS, "complete"),
        metavar="bash|zsh|fish",
        help="which shell; the scripts themselves ask for 'complete'",
    )
    # All that follows, dashes included: it is another command's line.
    parser.add_argument("words", nargs=argparse.REMAINDER, help="what was typed, for 'complete'")


def run(options: argparse.Namespace) -> int:
    """Print the script, or what could stand in the place of the last word."""
    if options.shell != "complete":
        print(SCRIPTS[options.shell], end="")
        return 0
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    for each in candidates(words):
        print(each)
    return 0


def kubectl() -> int:
    """Answer kubectl, which passes the words and expects a directive at the end."""
    found = candidates(sys.argv[1:])
    for each in found:
        print(each)
    # Directives of kubectl's completion: 2 adds no space, 4 offers no files.
    print(f":{2 if any(each.endswith('/') for each in found) else 0 if not found else 4}")
    return 0


def candidates(words: Sequence[str]) -> list[str]:
    """Return what could stand in the place of the last word."""
    from sully.cli.main import COMMANDS, build_parser
    from sully.cli.parsing import BEFORE, behind_flags, command_first

    *before, last = words or [""]
    # Not the last one: it may just have become a command, and is still what is completed.
    before = command_first(before, COMMANDS)
    at = behind_flags(before)
    if at > len(before):
        found = _of_early_flag(before, last)
    elif at == len(before):
        found = [*COMMANDS, *(BEFORE if last.startswith("-") else ()), "--help", "--version"]
    elif before == ["help"]:
        found = list(COMMANDS)
    elif before[at] in COMMANDS:
        command = _subparser(build_parser(before[at]), before[at])
        return [each for each in _of_command(command, before, last) if _fits(each, last)]
    else:
        found = []
    return [each for each in found if each.startswith(last)]


def _of_early_flag(before: Sequence[str], last: str) -> list[str]:
    """Return values of a flag that stands before the command."""
    from sully.cli.names import FLAGS, names
    from sully.cli.parsing import BEFORE

    given = _values(before, BEFORE)
    return names(FLAGS[before[-1]], last, given) if before[-1] in FLAGS else []


def _fits(candidate: str, last: str) -> bool:
    # bash takes a colon for a word of its own, and what follows for the next.
    return last == ":" or candidate.startswith(last)


def _of_command(parser: argparse.ArgumentParser, before: Sequence[str], last: str) -> Iterator[str]:
    name = before[0]
    actions = _actions(parser)
    flags = {flag: action for action in actions for flag in action.option_strings}
    given = _values(before[1:], flags)
    flag, equals, typed = last.partition("=")
    if equals and flag in flags:
        yield from (f"{flag}={each}" for each in _of_flag(flags[flag], flag, typed, given))
        return
    previous = flags.get(before[-1])
    if previous is not None and previous.nargs not in (0, argparse.OPTIONAL):
        yield from _of_flag(previous, before[-1], last, given)
        return
    if last.startswith("-"):
        yield from (each for each in flags if each.startswith("--"))
        return
    places = [action for action in actions if not action.option_strings]
    yield from _of_place(name, places, _words(before[1:], flags), last, given)


def _of_flag(
    action: argparse.Action, flag: str, typed: str, given: Mapping[str, str]
) -> Iterator[str]:
    from sully.cli.names import FLAGS, names

    yield from (str(each) for each in action.choices or ())
    if flag in FLAGS:
        yield from names(FLAGS[flag], typed, given)


def _of_place(
    command: str,
    places: Sequence[argparse.Action],
    words: Sequence[str],
    last: str,
    given: Mapping[str, str],
) -> Iterator[str]:
    """Yield what could be the next word that is no flag."""
    from sully.cli.client.subjects import named
    from sully.cli.names import names

    if command in _TAINTS:
        kind = named(words[0])[0] if words else ""
        yield from _of_taint(kind, words, last, given)
        if command == "untaint" and len(words) > 1:
            yield from _of_keys(kind, last, given)
        return
    at = len(words)
    if at < len(places):
        yield from (str(each) for each in places[at].choices or () if each not in _UNSAID)
    what, typed = _subject(command, words), last
    kind, slash, rest = last.partition("/")
    if slash and not words and command in _ASKED:
        what, typed = _subject(command, [named(kind)[0]]), rest
    if what:
        yield from (f"{last.removesuffix(typed)}{each}" for each in names(what, typed, given))


def _subject(command: str, words: Sequence[str]) -> str:
    """Return what the next word names; empty if it names nothing that a server has."""
    from sully.cli.client.subjects import named
    from sully.cli.names import DEVICES, SUBJECTS

    match command, list(words):
        case "devices", _:
            return DEVICES
        case "evictions", [_, *_]:
            return SUBJECTS["rule"]
        case "explain" | "history", [kind]:
            return SUBJECTS.get(named(kind)[0], "")
        case _:
            return ""


_ASKED = ("explain", "history")
"""Commands that take KIND/NAME, too."""
_TAINTS = ("taint", "untaint", "plan")


def _of_taint(
    what: str, words: Sequence[str], last: str, given: Mapping[str, str]
) -> Iterator[str]:
    from sully.cli.names import SUBJECTS, names

    if not words:
        yield from ("device", "cluster")
        return
    key, colon, _ = last.rpartition(":")
    if ":" in (last, words[-1]):
        yield from _effects(what)
    elif colon:
        yield from (f"{key}:{each}" for each in _effects(what))
    else:
        yield from names(SUBJECTS.get(what, SUBJECTS["device"]), last, given)


def _of_keys(what: str, last: str, given: Mapping[str, str]) -> Iterator[str]:
    """Yield keys of taints that there are to be taken off."""
    from sully.cli.names import CLUSTER_KEYS, DEVICE_KEYS, names

    yield from names(CLUSTER_KEYS if what == "cluster" else DEVICE_KEYS, last, given)


def _effects(what: str) -> Sequence[str]:
    from sully.domain.planning.taintgrammar import CLUSTER_EFFECTS, DEVICE_EFFECTS

    return CLUSTER_EFFECTS if what == "cluster" else DEVICE_EFFECTS


def _words(words: Sequence[str], flags: Mapping[str, argparse.Action]) -> list[str]:
    """Return the words that are neither flags nor values of flags."""
    found, value = [], False
    for word in words:
        if value:
            value = False
        elif word.startswith("-"):
            value = word in flags and flags[word].nargs not in (0, argparse.OPTIONAL)
        else:
            found.append(word)
    return found


def _values(words: Sequence[str], flags: Collection[str]) -> dict[str, str]:
    """Return the values of flags that were typed, for those that say which server to ask."""
    found = dict(pairwise(words))
    found |= {flag: value for flag, _, value in (each.partition("=") for each in words) if value}
    return {flag: value for flag, value in found.items() if flag in flags}


def _subparser(parser: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    for action in _actions(parser):
        if isinstance(action, argparse._SubParsersAction):
            found: argparse.ArgumentParser = action.choices[name]
            return found
    raise LookupError(name)


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    # argparse has no public way to ask what was added; it has kept this for twenty years.
    return parser._actions
