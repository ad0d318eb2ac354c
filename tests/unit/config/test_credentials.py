"""Tokens: kept for their owner alone, found in the right order, sent to nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.config.credentials import (
    credentials_path,
    find_token,
    read_token,
    server_of,
    token_variable,
    write_token,
)
from omnigraph.config.operator import OperatorConfig
from omnigraph.errors import DeniedError, InvalidArgumentError


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OMNIGRAPH_BEARER_TOKEN", raising=False)


def test_a_token_is_kept_and_forgotten() -> None:
    assert read_token("prod") is None
    write_token("prod", "one")
    write_token("dev-eu", "two")
    write_token("prod", "three")
    assert (read_token("prod"), read_token("dev-eu")) == ("three", "two")
    assert credentials_path().stat().st_mode & 0o777 == 0o600
    write_token("prod", None)
    write_token("prod", None)  # once more changes nothing
    assert (read_token("prod"), read_token("dev-eu")) == (None, "two")
    assert [path.name for path in credentials_path().parent.iterdir()] == ["credentials"]


def test_comments_stay() -> None:
    write_token("prod", "one")
    credentials_path().write_text("# mine\n[dev]\ntoken = 'x'\n")
    write_token("prod", "two")
    assert credentials_path().read_text() == "# mine\n[dev]\ntoken = 'x'\n\n[prod]\ntoken = two\n"
    assert read_token("dev") == "x"


def test_a_file_that_others_can_read_is_refused() -> None:
    write_token("prod", "one")
    credentials_path().chmod(0o640)
    for use in (lambda: read_token("prod"), lambda: write_token("prod", "two")):
        with pytest.raises(DeniedError, match="Others can read"):
            use()


def test_a_strange_token_or_name_is_refused() -> None:
    for server, token in (("prod", ""), ("prod", "a b"), ("a]b", "t"), ("", "t")):
        with pytest.raises(InvalidArgumentError):
            write_token(server, token)


def test_the_order_in_which_a_token_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert token_variable("prod-eu") == "OMNIGRAPH_TOKEN_PROD_EU"
    assert find_token("prod") is None
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "any")
    assert (find_token("prod"), find_token(None)) == ("any", "any")
    write_token("prod", "own")
    assert (find_token("prod"), find_token(None)) == ("own", "any")
    monkeypatch.setenv("OMNIGRAPH_TOKEN_PROD", "first")
    assert find_token("prod") == "first"


def test_an_address_belongs_to_the_server_whose_address_it_begins_with() -> None:
    known = {"a": "http://h:8080", "b": "http://h:8080/x/"}
    config = OperatorConfig(servers=known)
    assert server_of("http://h:8080/graphs/k", config) == "a"
    assert server_of("http://h:8080/x/graphs/k", config) == "b"
    assert server_of("http://h:8080-evil/x", config) is None
