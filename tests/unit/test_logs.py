"""Logging: silent by default, structured when asked."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from omnigraph import logs
from omnigraph.errors import InvalidArgumentError

log = logs.logger("omnigraph.commit.publish")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    yield io.StringIO()
    logs.silence()


def test_a_library_says_nothing() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from omnigraph import logs\nlogs.logger('omnigraph.x').critical('help')",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_text_carries_fields(stream: io.StringIO) -> None:
    logs.configure("info", stream=stream)
    log.info("published", extra=logs.fields(branch="main", note="two words", empty="", n=3))
    written = stream.getvalue()
    assert " INFO commit.publish: published" in written
    assert written.endswith('branch=main note="two words" empty="" n=3\n')


def test_json_carries_fields(stream: io.StringIO) -> None:
    logs.configure("info", as_json=True, stream=stream)
    log.info("published %d", 3, extra=logs.fields(branch="main", level="mine", ids={"a"}))
    told = json.loads(stream.getvalue())
    assert told["message"] == "published 3"
    assert told["level"] == "info"  # a field cannot hide what is fixed
    assert told["logger"] == "omnigraph.commit.publish"
    assert told["branch"] == "main"
    assert told["ids"] == "{'a'}"
    assert told["time"].endswith("+00:00")


@pytest.mark.parametrize("as_json", [False, True])
def test_an_exception_is_told(stream: io.StringIO, as_json: bool) -> None:
    logs.configure("error", as_json=as_json, stream=stream)
    try:
        raise KeyError("k")
    except KeyError:
        log.exception("failed")
    assert "KeyError: 'k'" in stream.getvalue()


def test_the_level_holds(stream: io.StringIO) -> None:
    logs.configure("error", stream=stream)
    log.warning("unheard")
    assert stream.getvalue() == ""


def test_configuring_twice_prints_once(stream: io.StringIO) -> None:
    foreign = logging.NullHandler()
    logging.getLogger(logs.ROOT).addHandler(foreign)
    logs.configure("info", stream=stream)
    logs.configure("info", stream=stream)
    log.info("once")
    assert stream.getvalue().count("once") == 1
    assert foreign in logging.getLogger(logs.ROOT).handlers
    logging.getLogger(logs.ROOT).removeHandler(foreign)


def test_no_such_level() -> None:
    with pytest.raises(InvalidArgumentError, match="Choose one of debug"):
        logs.configure("loud")
