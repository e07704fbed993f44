"""What commands that run until they are stopped print: lines for people, or JSON lines.

With --log-format json every line that a process writes is a JSON object on standard error, also
where a supervisor merges both streams.
"""

from sully.cli.process import discard_output


def announce(text: str, event: str, **fields: object) -> None:
    """Print a text for people, or log an event for programs."""
    from sully.runtime.log import get_logger, is_json

    if is_json():
        get_logger("sully").info(event, **fields)
        return
    try:
        print(text, flush=True)
    except OSError:
        # The process continues if it is not read.
        discard_output()
