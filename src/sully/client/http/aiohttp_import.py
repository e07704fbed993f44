"""Imports aiohttp without loading the system's CA certificates.

aiohttp loads them twice on import, for connections without an SSL context. Sully always passes one
(access.py), and a third of the import time is wasted: 45 ms of every command. Not for a process
with threads, because the environment is changed meanwhile.
"""

from __future__ import annotations

import os
import ssl
import sys
from importlib import import_module


def import_aiohttp() -> None:
    """Import aiohttp, if it is not imported yet."""
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
