"""`sully version`: this program, and the API it serves."""

from sully import __version__
from sully.cli.command import Options, command


@command("version", usage="", help="Print the version of this program and of the API it serves.")
def version(_options: Options) -> int:
    print(f"sully {__version__} (serves the Kubernetes 1.37 API)")
    return 0
