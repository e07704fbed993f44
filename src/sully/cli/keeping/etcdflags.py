"""Flags that say how to reach an etcd: for `sully up` and `sully migrate`."""

import argparse
from pathlib import Path

from sully.store.etcd.address import SCHEME, Tls, parse_address


def add_etcd_flags(parser: argparse.ArgumentParser) -> None:
    """Add the files with which etcd and we prove who we are."""
    for name, what in (
        (
            "cafile",
            "certificates of the authority that etcd's members must be signed by; turns on TLS",
        ),
        ("certfile", "certificate to show to etcd"),
        ("keyfile", "key of that certificate"),
    ):
        parser.add_argument(f"--etcd-{name}", type=Path, metavar="FILE", help=what)


def etcd_tls(options: argparse.Namespace) -> Tls:
    """Return what the flags say."""
    return Tls(options.etcd_cafile, options.etcd_certfile, options.etcd_keyfile)


def check_etcd(store: str, tls: Tls) -> None:
    """Raise `ValueError` for an address or files that cannot work."""
    if store.startswith(SCHEME):
        parse_address(store, tls)
        for path in (tls.ca, tls.certificate, tls.key):
            if path is not None and not path.is_file():
                raise ValueError(f"there is no file {path}")
    elif tls != Tls():
        raise ValueError(f"the --etcd- flags only work with --store {SCHEME}…")
