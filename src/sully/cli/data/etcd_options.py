"""Flags for the connection to etcd, of `sully up` and `sully migrate`."""

from pathlib import Path
from typing import Any

import click

from sully.cli.client.options import options as join
from sully.cli.command import Options
from sully.store.etcd.address import SCHEME, Address, Login, Tls, parse_address

_FILE: dict[str, Any] = {"type": click.Path(path_type=Path), "metavar": "FILE"}
etcd_options = join(
    click.option("--etcd-cafile", help="CA certificate of etcd. Enables TLS.", **_FILE),
    click.option("--etcd-certfile", help="Client certificate for etcd.", **_FILE),
    click.option("--etcd-keyfile", help="Key of the client certificate for etcd.", **_FILE),
    click.option("--etcd-username", default="", metavar="NAME", help="User of etcd."),
    click.option(
        "--etcd-password-file",
        help="File with the password of that user. Read again on every login.",
        **_FILE,
    ),
)


def etcd_address(store: str, options: Options) -> Address | None:
    """Return where an etcd is and how to reach it, `None` for another store.

    Raises `ValueError` for an address or files that cannot work.
    """
    tls = Tls(options.etcd_cafile, options.etcd_certfile, options.etcd_keyfile)
    login = Login(options.etcd_username, options.etcd_password_file)
    if store.startswith(SCHEME):
        address = parse_address(store, tls, login)
        for path in (tls.ca, tls.certificate, tls.key, login.password):
            if path is not None and not path.is_file():
                raise ValueError(f"file {path} not found")
        return address
    if (tls, login) != (Tls(), Login()):
        raise ValueError(f"--etcd-... flags require a store in etcd ({SCHEME}...)")
    return None
