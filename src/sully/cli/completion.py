"""`sully completion`: what lets a shell complete commands, flags and their values.

The scripts ask the program itself (`sully completion complete -- WORDS`), so they never go stale;
it reads the same parsers that the commands use, and imports only the command at hand. kubectl asks
through a program called kubectl_complete-sully.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence

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
}
complete -o default -F _sully sully
"""
_ZSH = """\
#compdef sully
_sully() {
  local -a found
  found=("${(@f)$(sully completion complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "${found[1]}" ]]; then compadd -a found; else _files; fi
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
    for each in candidates(sys.argv[1:]):
        print(each)
    print(":0")
    return 0


def candidates(words: Sequence[str]) -> list[str]:
    """Return what could stand in the place of the last word."""
    from sully.cli.main import COMMANDS, build_parser

    *before, last = words or [""]
    name = next((word for word in before if not word.startswith("-")), "")
    if not name:
        found = [*COMMANDS, "--help", "--version"]
    elif name in COMMANDS:
        found = list(_of_command(build_parser(name), name, before, last))
    else:
        found = []
    return [each for each in found if each.startswith(last)]


def _of_command(
    parser: argparse.ArgumentParser, name: str, before: Sequence[str], last: str
) -> Iterator[str]:
    actions = _actions(_subparser(parser, name))
    flags = {flag: action for action in actions for flag in action.option_strings}
    previous = flags.get(before[-1]) if before else None
    if previous is not None and previous.nargs != 0:
        yield from previous.choices or ()
        return
    if last.startswith("-"):
        yield from (each for each in flags if each.startswith("--"))
        return
    places = [action for action in actions if not action.option_strings]
    given = _positions(before[1:], flags)
    if given < len(places):
        yield from (str(each) for each in places[given].choices or () if each not in _UNSAID)


def _positions(words: Sequence[str], flags: Mapping[str, argparse.Action]) -> int:
    """Count the words that are neither flags nor values of flags."""
    count, value = 0, False
    for word in words:
        if value:
            value = False
        elif word.startswith("-"):
            value = word in flags and flags[word].nargs != 0
        else:
            count += 1
    return count


def _subparser(parser: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    for action in _actions(parser):
        if isinstance(action, argparse._SubParsersAction):
            found: argparse.ArgumentParser = action.choices[name]
            return found
    raise LookupError(name)


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    # argparse has no public way to ask what was added; it has kept this for twenty years.
    return parser._actions
