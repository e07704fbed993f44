from __future__ import annotations

import io
import logging
import subprocess
import sys

import msgspec
import pytest

from sully.runtime.log import Format, Tally, configure, get_logger


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in stream.getvalue().splitlines()]


def test_a_json_line_has_the_message_and_its_fields() -> None:
    out = io.StringIO()
    configure("json", stream=out)

    get_logger("store", part="writer").info("checkpoint failed", error=OSError("full"), tries=2)

    (line,) = lines(out)
    assert str(line.pop("time")).endswith("Z")
    assert line == {
        "event": "checkpoint failed",
        "level": "info",
        "logger": "store",
        "part": "writer",
        "error": "full",
        "tries": 2,
    }


def test_a_console_line_is_readable_and_without_colours_in_a_file() -> None:
    out = io.StringIO()
    configure("console", stream=out)

    get_logger("store").warning("it is late", pod="default/a")

    line = out.getvalue()
    assert "it is late" in line
    assert "pod=default/a" in line
    assert "\x1b" not in line


def test_a_logger_made_before_the_configuration_follows_it() -> None:
    logger = get_logger("store")
    out = io.StringIO()
    configure("json", level="warning", stream=out)

    logger.info("too quiet")
    logger.bind(key="a").error("loud enough")

    assert [line["event"] for line in lines(out)] == ["loud enough"]


def test_an_exception_is_shown() -> None:
    out = io.StringIO()
    configure("json", stream=out)
    try:
        raise LookupError("where is it")
    except LookupError:
        get_logger("store").exception("lost")

    (line,) = lines(out)
    assert "LookupError: where is it" in str(line["exception"])


@pytest.mark.parametrize("form", ["console", "json"])
def test_an_exception_is_shown_without_the_values_of_variables(form: Format) -> None:
    def authenticate(token: str) -> None:
        raise KeyError(len(token))

    out = io.StringIO()
    configure(form, stream=out)
    secret = "".join(("to", "ken", "-of-", "alice"))
    try:
        authenticate(secret)
    except KeyError:
        get_logger("server").exception("request failed")

    assert "KeyError" in out.getvalue()
    assert secret not in out.getvalue()


def test_libraries_come_through_the_same_handler() -> None:
    out = io.StringIO()
    configure("json", stream=out)

    logging.getLogger("asyncio").warning("slow %s", "callback")
    logging.getLogger("asyncio").info("not worth a line")

    (line,) = lines(out)
    assert (line["event"], line["logger"], line["level"]) == ("slow callback", "asyncio", "warning")


def test_what_a_terminal_would_obey_is_written_out() -> None:
    out = io.StringIO()
    configure("console", stream=out)

    get_logger("server").error("request failed", path="/x\n\x1b[2Jroom=forged", who="\x9b31m")

    assert out.getvalue().count("\n") == 1
    assert out.getvalue().rstrip("\n").isprintable()


def test_what_happens_often_is_logged_once_per_interval() -> None:
    out = io.StringIO()
    configure("json", stream=out)
    tally = Tally(get_logger("server"), "requests refused", seconds=60)

    for now in range(100):
        tally.add(address=f"10.0.0.{now}")
        tally.report(float(now))
    tally.report(1000.0)
    tally.report(2000.0)

    assert [(line["count"], line["address"]) for line in lines(out)] == [
        (1, "10.0.0.0"),
        (60, "10.0.0.60"),
        (39, "10.0.0.99"),
    ]


WITHOUT_DESCRIPTORS = """
import resource
from sully.runtime.log import configure, get_logger, load

configure()
load()
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
get_logger("x").warning("out of file descriptors")
"""


def test_the_first_line_is_written_without_file_descriptors() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DESCRIPTORS], capture_output=True, text=True, check=False
    )

    assert "out of file descriptors" in done.stderr
    assert done.returncode == 0, done.stderr
