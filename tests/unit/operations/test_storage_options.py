"""Storage options per graph: two S3 stores in one process, profiles, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.motoserver import SecondS3Server
from tests.support.s3 import BUCKET, KEYS, S3Server

import omnigraph
from omnigraph.config.addresses import profile_scope
from omnigraph.config.operator import parse_config
from omnigraph.errors import OmniGraphError, StorageConfigurationError
from omnigraph.storage.location import parse_location

SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person { }\n"
NAMES = "query names() { match { $p: Person } return { $p.name as name } order { $p.name } }"
PAIRS = "query pairs() { match { $a: Person $a knows $b } return { $a.name as a, $b.name as b } }"


def _options(endpoint: str, key: str = "writer") -> dict[str, str]:
    name, secret = KEYS[key]
    return {
        "access_key_id": name,
        "aws_secret_access_key": secret,
        "region": "us-east-1",
        "endpoint": endpoint,
        "allow_http": "true",
        "virtual_hosted_style_request": "false",
    }


@pytest.fixture
def without_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)


def _insert(name: str) -> str:
    return f'query add() {{ insert Person {{ name: "{name}" }} }}'


def _names(graph: Any) -> list[str]:
    return [row["name"] for row in graph.query(NAMES).rows()]


@pytest.mark.usefixtures("without_aws")
def test_20_02_two_stores_with_one_address(
    s3_server: S3Server, second_s3_server: SecondS3Server, tmp_path: Path
) -> None:
    uri = f"s3://{BUCKET}/{uuid4().hex}"
    first = _options(s3_server.endpoint)
    second = _options(second_s3_server.endpoint)
    here = omnigraph.init(uri, SCHEMA, storage_options=first)
    there = omnigraph.init(uri, SCHEMA, storage_options=second)
    for graph, names in ((here, ("ada", "bob")), (there, ("eve",))):
        for name in names:
            graph.mutate(_insert(name))
    here.mutate('query link() { insert Knows { from: "ada", to: "bob" } }')
    assert (_names(here), _names(there)) == (["ada", "bob"], ["eve"])
    assert here.query(PAIRS).rows() == [{"a": "ada", "b": "bob"}]
    assert there.query(PAIRS).rows() == []
    there.export(str(tmp_path / "out"))
    assert omnigraph.open(uri, storage_options=second).stats().rows == 1
    assert _names(omnigraph.open(uri, read_only=True, storage_options=first)) == ["ada", "bob"]


@pytest.mark.usefixtures("without_aws")
def test_20_02_credentials_are_of_one_graph(s3_server: S3Server) -> None:
    uri = f"s3://{BUCKET}/{uuid4().hex}"
    writer = omnigraph.init(uri, SCHEMA, storage_options=_options(s3_server.endpoint))
    writer.mutate(_insert("ada"))
    reading = _options(s3_server.endpoint, "reader")
    reader = omnigraph.open(uri, read_only=True, storage_options=reading)
    assert _names(reader) == ["ada"]
    with pytest.raises(OmniGraphError):
        omnigraph.open(uri, storage_options=reading).mutate(_insert("bob"))
    wrong = {**reading, "aws_secret_access_key": "no-such-secret"}
    with pytest.raises(OmniGraphError):
        omnigraph.open(uri, read_only=True, storage_options=wrong).query(NAMES)
    assert _names(writer) == ["ada"]


def test_20_02_options_win_over_the_environment() -> None:
    environ = {"AWS_REGION": "eu-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SESSION_TOKEN": "t"}
    found = parse_location("s3://b/g", environ, {"access_key_id": "x", "secret_access_key": "y"})
    assert found.storage_options == {
        "aws_region": "eu-1",
        "aws_access_key_id": "x",
        "aws_secret_access_key": "y",
    }
    assert "y" not in repr(found).replace("key", "")
    assert found.key != parse_location("s3://b/g", environ).key
    assert found.child("nodes/1").key != found.key


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("s3://b/g", {"colour": "red"}),
        ("s3://b/g", {"allow_http": "perhaps"}),
        ("memory://x", {"region": "eu-1"}),
        ("somewhere", {"region": "eu-1"}),
    ],
)
def test_20_02_options_that_make_no_sense_are_refused(uri: str, options: dict[str, str]) -> None:
    with pytest.raises(StorageConfigurationError) as caught:
        omnigraph.open(uri, storage_options=options)
    assert caught.value.hint


CONFIG = """
stores:
  shop: {uri: s3://acme/shop, storage_options: {region: eu-1, secret_access_key: $SHOP_SECRET}}
  bare: {uri: s3://acme/bare, storage_options: {secret_access_key: abc}}
profiles:
  dev: {store: shop, storage_options: {region: eu-2}}
"""


def test_20_02_stores_and_profiles_have_options(monkeypatch: pytest.MonkeyPatch) -> None:
    config = parse_config(CONFIG, Path("config.yaml"))
    assert config.warnings == ()
    with pytest.raises(StorageConfigurationError, match="SHOP_SECRET"):
        profile_scope(config, "dev")
    monkeypatch.setenv("SHOP_SECRET", "s")
    found = profile_scope(config, "dev")
    assert found.storage_options == {"region": "eu-2", "secret_access_key": "s"}
    assert "secret" not in repr(found)
    bare = parse_config(CONFIG.replace("store: shop", "store: bare"), Path("config.yaml"))
    with pytest.raises(StorageConfigurationError, match="secret"):
        profile_scope(bare, "dev")
