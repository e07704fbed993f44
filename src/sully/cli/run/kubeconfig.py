"""`sully kubeconfig`: create a kubeconfig with a client certificate for a user.

It signs with the certificate authority in the data directory, so it runs where the server's files
are, whether the server is running or not. RBAC decides what the user may do.
"""

import sys
from datetime import timedelta
from pathlib import Path

import click

from sully.cli.client.options import data_dir_option, seconds
from sully.cli.command import USAGE_ERROR, CommandError, Options, command
from sully.cli.output.formatting import duration

_HELP = """\
Create a client certificate and print a kubeconfig that uses it.

A certificate cannot be revoked before it expires: use short ones for users whose access you may
have to end, or delete their role bindings. Members of the group system:masters may do everything.
"""
_EXAMPLES = """\
# Create a kubeconfig for a user in a group
sully kubeconfig --user alice --group team-a > alice.kubeconfig

# Create one that expires after a day, for a server with another address
sully kubeconfig --user ci --expires 24h -o ci.kubeconfig \\
    --server https://10.0.0.5:6443
"""
_LONGEST = timedelta(days=100 * 365)


def _lifetime(text: str) -> timedelta:
    life = seconds(text)
    if not 1 <= life <= _LONGEST.total_seconds():
        raise click.BadParameter(f'invalid duration "{text}" (1s to 100 years)')
    return timedelta(seconds=int(life))


@command("kubeconfig", usage="--user NAME [flags]", help=_HELP, examples=_EXAMPLES)
@click.option("--user", required=True, metavar="NAME", help="Name of the user.")
@click.option("--group", multiple=True, metavar="NAME", help="Group of the user. Can be repeated.")
@data_dir_option("Data directory of the control plane.")
@click.option(
    "--expires",
    default="8760h",
    show_default=True,
    type=_lifetime,
    metavar="DURATION",
    help="How long the certificate is valid, for example 30m, 24h, 90d.",
)
@click.option(
    "--server",
    default="",
    metavar="URL",
    show_default="as in the kubeconfig of the data directory",
    help="Address of the server.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to a file with mode 0600 instead of standard output.",
)
def kubeconfig(options: Options) -> int:
    content = _issue(options)
    if options.output is None:
        print(content.decode(), end="")
        return 0
    from sully.runtime.files import write_private

    try:
        write_private(options.output, content)
    except OSError as error:
        raise CommandError(f"cannot write {options.output}: {error}") from error
    print(f"{options.output}: {_summary(options)}", file=sys.stderr)
    return 0


def _issue(options: Options) -> bytes:
    # Late imports: `--help` does not need them.
    from sully.client.kubeconfig.writing import Login
    from sully.client.kubeconfig.writing import kubeconfig as with_login
    from sully.machinery.serialization.codec import to_yaml
    from sully.runtime.clock import SystemClock
    from sully.server.net.tls import Authority
    from sully.store.errors import OpenError

    folder: Path = options.data_dir
    missing = [name for name in ("ca.crt", "ca.key") if not (folder / name).exists()]
    if missing:
        raise CommandError(
            f"{folder} is not a data directory of a control plane: {missing[0]} not found\n"
            f"  run 'sully up --data-dir {folder}' first, or use another --data-dir"
        )
    try:
        now = SystemClock().now()
        authority = Authority.open(folder, now)
        pair = authority.client(options.user, options.group, now, options.expires)
    except OpenError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(
            f"cannot read the certificate authority in {folder}: {error}", 1
        ) from None
    except ValueError as error:
        raise CommandError(f"invalid user or group: {error}", USAGE_ERROR) from None
    login = Login(
        server=options.server or _server(folder),
        ca=authority.pair.certificate,
        user=options.user,
        certificate=pair.certificate,
        key=pair.key,
    )
    return to_yaml(with_login(login))


def _server(folder: Path) -> str:
    """Return the address of the server in the kubeconfig of the data directory."""
    import yaml

    try:
        content = yaml.safe_load((folder / "kubeconfig").read_bytes())
        return str(content["clusters"][0]["cluster"]["server"])
    except (OSError, yaml.YAMLError, LookupError, TypeError):
        raise CommandError(f"no server address in {folder}/kubeconfig; use --server URL") from None


def _summary(options: Options) -> str:
    groups = f" in {', '.join(options.group)}" if options.group else ""
    return f"user {options.user}{groups}, valid for {duration(options.expires.total_seconds())}"
