"""Flags that say how to reach an etcd, and as whom: for `sully up` and `sully migrate`."""

import argparse
from pathlib import Path

from sully.store.etcd.address import SCHEME, Address, Login, Tls, parse_address


def add_etcd_flags(parser: argparse.ArgumentParser) -> None:
    """Add what etcd and we prove with who we are."""
    for name, what in (
        (
            "cafile",
            "certificates of the authority that etcd's members must be signed by; turns on TLS",
        ),
        ("certfile", "certificate to show to etcd"),
        ("keyfile", "key of that certificate"),
    ):
        parser.add_argument(f"--etcd-{name}", type=Path, metavar="FILE", help=what)
    parser.add_argument(
        "--etcd-username",
        default="",
        metavar="NAME",
        help="who we are to an etcd that asks for passwords",
    )
    parser.add_argument(
        "--etcd-password-file",
        type=Path,
        metavar="FILE",
        help="the password of that user; read again whenever etcd asks for it",
    )


def etcd_address(store: str, options: argparse.Namespace) -> Address | None:
    """Return where an etcd is and how to reach it, `None` for another store.

    Raises `ValueError` for an address or files that cannot work.
    """
    tls = Tls(options.etcd_cafile, options.etcd_certfile, options.etcd_keyfile)
    login = Login(options.etcd_username, options.etcd_password_file)
    if store.startswith(SCHEME):
        address = parse_address(store, tls, login)
        for path in (tls.ca, tls.certificate, tls.key, login.password):
            if path is not None and not path.is_file():
                raise ValueError(f"there is no file {path}")
        return address
    if (tls, login) != (Tls(), Login()):
        raise ValueError(f"the --etcd- flags only work with --store {SCHEME}…")
    return None
