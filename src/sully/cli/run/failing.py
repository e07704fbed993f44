"""Why a control plane could not be started, or had to end, in words that say what to do."""

import argparse
import errno

_LISTEN = {
    errno.EADDRINUSE: "is in use; stop what listens there or give another --listen",
    errno.EACCES: "is not for everybody; give --listen a port from 1024 on",
    errno.EADDRNOTAVAIL: "is no address of this machine; --listen 0.0.0.0:PORT takes all it has",
}


def explain(error: BaseException, options: argparse.Namespace) -> str:
    """Say what went wrong, and with what."""
    from sully.server.net.listen import ListenError

    if isinstance(error, BaseExceptionGroup):
        # Where many writes fail at once they fail alike.
        return explain(error.exceptions[0], options)
    if isinstance(error, ListenError):
        why = _LISTEN.get(error.errno or 0, f"cannot be listened on: {error.strerror}")
        return f"{options.listen} {why}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} cannot be used: {error.strerror}"
    return str(error)
