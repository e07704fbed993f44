"""`sully version`: this program, and the API it serves."""

from sully import __version__
from sully.cli.client.options import choice_option
from sully.cli.command import Options, command

KUBERNETES = "1.37"


@command("version", help="Print the version of this program and of the API that it serves.")
@choice_option(
    "--output",
    "-o",
    choices=("text", "json", "yaml"),
    metavar="FORMAT",
    help_="Output format.",
)
def version(options: Options) -> int:
    if options.output == "text":
        print(f"sully {__version__} (serves the Kubernetes {KUBERNETES} API)")
        return 0
    from sully.cli.output.printers import print_document

    document = {"version": __version__, "kubernetesVersion": KUBERNETES}
    print_document(document, options.output)
    return 0
