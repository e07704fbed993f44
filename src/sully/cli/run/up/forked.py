"""A function that runs in a process of its own, forked before the function is needed.

What the function imports is never in the memory of this process, and is imported while this process
does something else.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class ForkedCall(Generic[T, R]):
    """One call of a function in a forked process; the function runs here if that process fails.

    Only for a process without threads: a forked process has their locks, but not the threads.
    """

    def __init__(self, load: Callable[[], Callable[[T], R]]) -> None:
        """`load` imports the function; it is called in the other process immediately."""
        self._load = load
        read_argument, write_argument = os.pipe()
        read_result, write_result = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(write_argument)
            os.close(read_result)
            _serve(load, read_argument, write_result)
        os.close(read_argument)
        os.close(write_result)
        self._argument = os.fdopen(write_argument, "wb")
        self._result = os.fdopen(read_result, "rb")

    def __call__(self, argument: T) -> R:
        """Call the function; raises what it raises."""
        with self._result:
            try:
                with self._argument:
                    self._argument.write(pickle.dumps(argument))
            except BrokenPipeError:
                # Its end is noticed below.
                pass
            result = self._result.read()
        os.waitpid(self._child, 0)
        if not result:
            return self._load()(argument)
        returned: R = pickle.loads(result)
        return returned


def _serve(load: Callable[[], Callable[[T], R]], argument: int, result: int) -> NoReturn:
    """Call the function in the other process, and end it without a result if that fails."""
    try:
        # Ctrl-C is sent to both, and ends this process by closing the pipe.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        function = load()
        with os.fdopen(argument, "rb") as file:
            data = file.read()
        if data:
            answer = pickle.dumps(function(pickle.loads(data)))
            with os.fdopen(result, "wb") as file:
                file.write(answer)
    finally:
        # Nothing that the other process has prepared for its own end may happen here, too.
        os._exit(0)
