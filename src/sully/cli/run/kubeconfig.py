"""`sully kubeconfig`: let somebody in, by a client certificate of their own.

It signs with the authority in the data directory, so it works where the server's files are,
whether the server runs or not. What the user may do is up to roles and bindings.
"""

import argparse
import re
import sys
from datetime import timedelta
from pathlib import Path

_EPILOG = """\
examples:
  sully kubeconfig --user alice --group team-a > alice.kubeconfig
  sully kubeconfig --user ci --expires 24h -o ci.kubeconfig --server https://10.0.0.5:6443

A certificate cannot be taken back before it ends: give short ones to those you may have to
shut out, or take away their roles. Members of the group system:masters may do everything.
"""
_UNITS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile(r"(\d+)([dhms])", re.ASCII)


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Issue a client certificate and print a kubeconfig that uses it."
    parser.epilog = _EPILOG
    parser.add_argument("--user", required=True, metavar="U", help="name of the user")
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="G",
        help="a group the user belongs to; may be given several times",
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=Path("data"),
        metavar="D",
        help="data directory of the control plane (default: ./data)",
    )
    parser.add_argument(
        "--expires",
        default="8760h",
        metavar="TIME",
        help="how long the certificate is good: 30m, 24h, 90d (default: 8760h, a year)",
    )
    parser.add_argument(
        "--server",
        default="",
        metavar="URL",
        help="where the user finds the server (default: as the admin's kubeconfig says)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write to a file that only its owner can read, instead of printing",
    )


def run(options: argparse.Namespace) -> int:
    """Print or write a kubeconfig."""
    try:
        life = parse_duration(options.expires)
        content = _issue(options, life)
    except _RefusalError as refusal:
        print(f"sully kubeconfig: {refusal}", file=sys.stderr)
        return refusal.code
    if options.output is None:
        print(content.decode(), end="")
        return 0
    from sully.runtime.files import write_private

    try:
        write_private(options.output, content)
    except OSError as error:
        print(f"sully kubeconfig: {options.output} cannot be written: {error}", file=sys.stderr)
        return 1
    print(f"{options.output}: {_summary(options)}", file=sys.stderr)
    return 0


class _RefusalError(Exception):
    """Why nothing was issued. 2: the flags are wrong; 1: it cannot be done here."""

    def __init__(self, text: str, code: int = 2) -> None:
        super().__init__(text)
        self.code = code


def parse_duration(text: str) -> timedelta:
    """Read a time like 30m, 24h, 90d or 1h30m."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise _RefusalError(f"--expires {text!r} is no time; say for example 24h or 90d")
    seconds = sum(int(number) * _UNITS[unit] for number, unit in parts)
    if not 0 < seconds <= 100 * 365 * _UNITS["d"]:
        raise _RefusalError(f"--expires {text!r}: a certificate is good for up to 100 years")
    return timedelta(seconds=seconds)


def _issue(options: argparse.Namespace, life: timedelta) -> bytes:
    # Late imports: `--help` and wrong flags need none of this.
    from sully.client.kubeconfig.writing import Login, kubeconfig
    from sully.machinery.codec import to_yaml
    from sully.runtime.clock import SystemClock
    from sully.server.net.tls import Authority
    from sully.store.errors import OpenError

    folder: Path = options.data_dir
    missing = [name for name in ("ca.crt", "ca.key") if not (folder / name).exists()]
    if missing:
        raise _RefusalError(
            f"{folder} is no data directory of a control plane: {missing[0]} is missing;"
            f" run 'sully up --data-dir {folder}' first, or give another --data-dir",
            1,
        )
    try:
        now = SystemClock().now()
        authority = Authority.open(folder, now)
        pair = authority.client(options.user, options.group, now, life)
    except OpenError as error:
        raise _RefusalError(str(error), 1) from None
    except OSError as error:
        raise _RefusalError(f"the authority in {folder} cannot be read: {error}", 1) from None
    except ValueError as error:
        raise _RefusalError(f"no certificate can carry these names: {error}") from None
    login = Login(
        server=options.server or _server(folder),
        ca=authority.pair.certificate,
        user=options.user,
        certificate=pair.certificate,
        key=pair.key,
    )
    return to_yaml(kubeconfig(login))


def _server(folder: Path) -> str:
    """Return where the admin finds the server."""
    import yaml

    try:
        content = yaml.safe_load((folder / "kubeconfig").read_bytes())
        return str(content["clusters"][0]["cluster"]["server"])
    except (OSError, yaml.YAMLError, LookupError, TypeError):
        raise _RefusalError(
            f"{folder}/kubeconfig does not say where the server is; give --server URL", 1
        ) from None


def _summary(options: argparse.Namespace) -> str:
    groups = f" in {', '.join(options.group)}" if options.group else ""
    return f"user {options.user}{groups}, good for {options.expires}"
