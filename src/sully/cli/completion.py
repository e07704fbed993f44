"""`sully completion`: shell completion of commands, flags, their values, and names of objects.

click decides what the last argument could be, and each flag and argument completes its values
(names.py). The scripts are ours: they pass arguments as they are (`sully completion complete --
WORDS`), add no space after a part of a device's name, and fall back to files. kubectl asks through
a program called kubectl_complete-sully.
"""

import sys
from collections.abc import Sequence

import click
from click.shell_completion import ShellComplete

from sully.cli.command import Choice, Options, command

_HELP = """\
Print a shell completion script. It completes commands, flags, and the names of objects on the
server.

kubectl completes 'kubectl sully' itself (since 1.26) if kubectl_complete-sully is in PATH; it is
installed next to sully.
"""
_EXAMPLES = """\
# Load the completion in ~/.bashrc
source <(sully completion bash)

# Load the completion in ~/.zshrc, after compinit
source <(sully completion zsh)

# Install the completion for fish
sully completion fish > ~/.config/fish/completions/sully.fish
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
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_COMPLETE = "complete"
"""What the scripts pass instead of a shell."""


class Shell(Choice):
    """A shell; the scripts also pass `complete`."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value if value == _COMPLETE else super().convert(value, param, ctx)


@command("completion", usage="bash|zsh|fish", help=_HELP, examples=_EXAMPLES)
@click.argument("shell", type=Shell(SCRIPTS), metavar="bash|zsh|fish")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def completion(options: Options) -> int:
    """Print the script, or completions of the last argument."""
    if options.shell != _COMPLETE:
        print(SCRIPTS[options.shell], end="")
        return 0
    arguments = options.arguments[1:] if options.arguments[:1] == ("--",) else options.arguments
    for word in candidates(arguments):
        print(word)
    return 0


# All arguments after `complete` belong to another command line, dashes included.
completion.allow_interspersed_args = False


def kubectl() -> int:
    """Answer kubectl, which passes the arguments and expects a directive at the end."""
    arguments = candidates(sys.argv[1:])
    for word in arguments:
        print(word)
    # Directives of kubectl's completion: 2 adds no space, 4 offers no files.
    print(f":{2 if any(word.endswith('/') for word in arguments) else 0 if not arguments else 4}")
    return 0


def candidates(arguments: Sequence[str]) -> list[str]:
    """Return completions of the last argument."""
    from sully.cli.main import COMMANDS, load, root

    *before, last = arguments or [""]
    if before == ["help"]:
        return [name for name in COMMANDS if name.startswith(last)]
    name = next((word for word in before if word in COMMANDS), "")
    if name:
        # The argument after a flag with an optional value is not its value.
        before = list(load(name).expanded(before))
    flag, equals, _ = last.partition("=")
    lead = f"{flag}=" if equals and flag.startswith("--") else ""
    items = ShellComplete(root(), {}, "sully", "").get_completions(before, last)
    # The shell completes files itself.
    return [lead + str(item.value) for item in items if item.type == "plain"]
