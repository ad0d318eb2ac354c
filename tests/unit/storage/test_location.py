"""Addresses: what they mean, that spellings agree, that secrets stay secret."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.errors import InvalidArgumentError, StorageConfigurationError
from omnigraph.model.location import Location
from omnigraph.storage.location import parse_location
from omnigraph.storage.objects import open_store

SECRETS = {
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "very-secret",
    "AWS_SESSION_TOKEN": "session-secret",
}


@pytest.mark.parametrize(
    "text", ["/data/shop", "/data/shop/", "/data//shop", "/data/x/../shop", "file:///data/shop"]
)
def test_spellings_of_a_path_agree(text: str) -> None:
    assert parse_location(text) == Location("/data/shop", "file", "/data/shop")


def test_relative_and_home_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/anna")
    assert parse_location("shop").path == str(tmp_path / "shop")
    assert parse_location(Path("shop")) == parse_location("./shop")
    assert parse_location("~/shop").path == "/home/anna/shop"


def test_file_addresses_are_percent_decoded() -> None:
    assert parse_location("file:///data/a%20b").path == "/data/a b"
    assert parse_location("file://localhost/data").path == "/data"
    assert parse_location("/data/a%20b").path == "/data/a%20b"


def test_s3_addresses() -> None:
    location = parse_location("s3://bucket/some//prefix/", environ={})
    assert location == Location("s3://bucket/some/prefix", "s3", "some/prefix", "bucket")
    assert parse_location("S3://bucket", environ={}).uri == "s3://bucket"
    assert location.child("nodes/1").uri == "s3://bucket/some/prefix/nodes/1"
    assert location.child("nodes/1").path == "some/prefix/nodes/1"
    assert parse_location("s3://bucket", environ={}).child("a").path == "a"


def test_memory_addresses() -> None:
    location = parse_location("memory://shop")
    assert (location.scheme, location.bucket, location.path) == ("memory", "shop", "")
    assert location.lance_uri() == "shared-memory://shop"
    assert location.child("a").lance_uri("b") == "shared-memory://shop/a/b"


@pytest.mark.parametrize("text", ["gs://b/x", "az://b", "http://h/x"])
def test_unknown_schemes_name_the_known_ones(text: str) -> None:
    with pytest.raises(StorageConfigurationError, match="s3://"):
        parse_location(text)


@pytest.mark.parametrize("text", ["s3://", "s3:///x", "s3://key:secret@bucket/x", "s3://b/x?k=v"])
def test_malformed_s3_addresses_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(StorageConfigurationError) as caught:
        parse_location(text)
    assert "secret@" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "file://", "s3://bucket/a/../b", "memory://m/./x", "a\0b"])
def test_addresses_that_make_no_sense(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_location(text)


def test_a_file_address_names_no_other_host() -> None:
    with pytest.raises(StorageConfigurationError, match="three slashes"):
        parse_location("file://server/data")


def test_settings_come_from_the_environment() -> None:
    location = parse_location(
        "s3://bucket",
        environ=SECRETS
        | {
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_REGION": "eu-central-1",
            "AWS_ENDPOINT_URL": "http://other",
            "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9000",
            "AWS_ALLOW_HTTP": "TRUE",
            "AWS_S3_FORCE_PATH_STYLE": "1",
        },
    )
    assert location.storage_options == {
        "aws_region": "eu-central-1",
        "aws_access_key_id": "AKIAEXAMPLE",
        "aws_secret_access_key": "very-secret",
        "aws_session_token": "session-secret",
        "aws_endpoint": "http://127.0.0.1:9000",
        "allow_http": "true",
        "aws_virtual_hosted_style_request": "false",
    }
    assert location.child("a").storage_options == location.storage_options


def test_a_flag_is_true_or_false() -> None:
    with pytest.raises(StorageConfigurationError, match="AWS_ALLOW_HTTP"):
        parse_location("s3://bucket", environ={"AWS_ALLOW_HTTP": "perhaps"})


def test_secrets_are_never_shown() -> None:
    location = parse_location("s3://bucket/x", environ=SECRETS)
    shown = f"{location!r} {location} {open_store(location)!r}"
    for secret in SECRETS.values():
        assert secret not in shown


def test_a_location_crosses_processes() -> None:
    location = parse_location("s3://bucket/x", environ=SECRETS)
    again = pickle.loads(pickle.dumps(location))
    assert again == location
    assert hash(again) == hash(location)


@pytest.mark.parametrize("name", ["plain", "with space", "p%41", "ha#sh", "ünï", "a+b=c&d"])
@pytest.mark.parametrize("place", ["disk", "s3"])
def test_lance_and_control_objects_agree_on_the_place(
    request: pytest.FixtureRequest, tmp_path: Path, place: str, name: str
) -> None:
    root = str(tmp_path) if place == "disk" else request.getfixturevalue("s3_root")
    location = parse_location(f"{root}/{name}")
    lance.write_dataset(
        pa.table({"a": [1]}),
        location.lance_uri("nodes/1"),
        storage_options=dict(location.storage_options) or None,
    )
    store = open_store(location)
    assert any(path.startswith("nodes/1/_versions/") for path in store.list())
    assert os.path.commonpath(list(store.list())) == "nodes/1"
