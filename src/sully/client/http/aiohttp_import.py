"""Imports aiohttp without the certificates of the system.

aiohttp reads them twice while it is imported, for whoever connects without saying whom he trusts.
We always say so (access.py), and a third of what that import takes is wasted: 45 ms of every
command. Not for a process with threads, because the environment is theirs as well.
"""

from __future__ import annotations

import os
import ssl
import sys
from importlib import import_module


def import_aiohttp() -> None:
    """Import aiohttp, if it is not there yet."""
    if "aiohttp" in sys.modules:
        return
    paths = ssl.get_default_verify_paths()
    names = (paths.openssl_cafile_env, paths.openssl_capath_env)
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, os.devnull))
    try:
        import_module("aiohttp")
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value
