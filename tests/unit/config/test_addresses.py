"""The operator's configuration: what it says, and which graph is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.config.addresses import Address, ScopeKind, is_local, profile_scope, resolve_scope
from omnigraph.config.operator import OperatorConfig, home, parse_config, read_config
from omnigraph.errors import EngineUnavailableError, InvalidArgumentError, NotFoundError

HERE = Path("config.yaml")
TEXT = """
operator: {actor: anna}
stores: {shop: {uri: /data/shop}, far: {uri: "s3://b/shop"}}
servers: {prod: {url: "https://graph.example.com"}}
clusters: {brain: {root: "s3://acme/brain"}}
profiles:
  near: {store: shop}
  raw: {store: /data/other}
  served: {server: prod, default_graph: knowledge}
  admin: {cluster: brain, default_graph: knowledge}
  none: {}
  two: {store: shop, server: prod}
aliases:
  top: {store: shop, file: q.gq, query: top, args: [n], params: {n: 3}, format: csv}
defaults: {store: far, output: json, table_max_column_width: 40}
"""


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> OperatorConfig:
    monkeypatch.delenv("OMNIGRAPH_PROFILE", raising=False)
    return parse_config(TEXT, HERE)


def test_the_file_is_read(config: OperatorConfig) -> None:
    assert config.actor == "anna"
    assert config.stores["shop"] == "/data/shop"
    assert config.aliases["top"].args == ("n",)
    assert config.aliases["top"].params == {"n": 3}
    assert (config.defaults.output, config.defaults.table_max_column_width) == ("json", 40)
    assert config.warnings == ()


def test_no_file_is_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "none"))
    assert read_config() == OperatorConfig(path=home() / "config.yaml")
    monkeypatch.setenv("OMNIGRAPH_HOME", "~/elsewhere")
    assert home() == Path.home() / "elsewhere"


def test_unknown_keys_are_told_and_ignored() -> None:
    text = "zebra: 1\nservers: {a: {url: u, token: secret}}\nprofiles: {p: {store: s, colour: red}}"
    found = parse_config(text, HERE)
    assert [each.split("the key ")[1].split(" ")[0] for each in found.warnings] == [
        "zebra",
        "servers.a.token",
        "profiles.p.colour",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "is not YAML"),
        ("- a", "must be a mapping"),
        ("stores: {a: {}}", "stores.a.uri must be an address"),
        ("operator: {actor: 3}", "operator.actor must be text"),
        ("aliases: {a: {args: n}}", "aliases.a.args must be a list"),
        ("defaults: {table_max_column_width: wide}", "must be a number"),
        ("defaults: {store: a, server: b}", "exclude each other"),
        ("defaults: {store: a, default_graph: b}", "exclude each other"),
    ],
)
def test_what_cannot_be_understood_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        parse_config(text, HERE)


@pytest.mark.parametrize(
    ("address", "profile", "found"),
    [
        (Address(uri="/x"), None, ("store", "/x", "the argument")),
        (Address(uri="shop"), None, ("store", "/data/shop", "the argument")),
        (Address(uri="./shop"), None, ("store", "./shop", "the argument")),
        (Address(store="shop"), None, ("store", "/data/shop", "--store")),
        (Address(uri="/x", profile="near"), None, ("store", "/x", "the argument")),
        (Address(uri="/x"), "near", ("store", "/x", "the argument")),
        (Address(profile="raw"), "near", ("store", "/data/other", "the profile raw")),
        (Address(), "near", ("store", "/data/shop", "the profile near")),
        (Address(), None, ("store", "s3://b/shop", "the defaults")),
        (Address(server="prod"), None, ("server", "https://graph.example.com", "--server")),
        (Address(server="http://h"), None, ("server", "http://h", "--server")),
        (Address(cluster="brain"), None, ("cluster", "s3://acme/brain", "--cluster")),
        (Address(profile="admin"), None, ("cluster", "s3://acme/brain", "the profile admin")),
    ],
)
def test_precedence(
    config: OperatorConfig,
    monkeypatch: pytest.MonkeyPatch,
    address: Address,
    profile: str | None,
    found: tuple[str, str, str],
) -> None:
    if profile:
        monkeypatch.setenv("OMNIGRAPH_PROFILE", profile)
    scope = resolve_scope(config, address)
    assert (str(scope.kind), scope.address, scope.origin) == found


@pytest.mark.parametrize(
    ("address", "error", "said"),
    [
        (Address(uri="/x", store="/y"), InvalidArgumentError, "the argument and --store"),
        (Address(store="/y", server="prod"), InvalidArgumentError, "--store and --server"),
        (Address(uri="https://h"), InvalidArgumentError, "is a server"),
        (Address(uri="/x", graph="k"), InvalidArgumentError, "one graph"),
        (Address(profile="zebra"), NotFoundError, "no profile 'zebra'"),
        (Address(profile="none"), InvalidArgumentError, "stands for nothing"),
        (Address(profile="two"), InvalidArgumentError, "stands for store and server"),
        (Address(server="zebra"), NotFoundError, "no server 'zebra'"),
    ],
)
def test_refusals(
    config: OperatorConfig, address: Address, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        resolve_scope(config, address)


def test_nothing_is_chosen_in_silence() -> None:
    with pytest.raises(InvalidArgumentError, match="No graph is named"):
        resolve_scope(OperatorConfig(path=HERE), Address())


def test_servers_and_clusters_are_not_reached_yet(config: OperatorConfig) -> None:
    scope = profile_scope(config, "served")
    assert (scope.kind, scope.graph) == (ScopeKind.SERVER, "knowledge")
    assert profile_scope(config, "served", "other").graph == "other"
    with pytest.raises(EngineUnavailableError, match="the server prod"):
        scope.store_uri()


def test_what_is_local() -> None:
    assert [is_local(uri) for uri in ("a/b", "/a", "file:///a", "s3://b/a", "gs://b")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "shop"
    omnigraph.init(str(place), "node Person { name: String @key }")
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path))
    monkeypatch.delenv("OMNIGRAPH_ACTOR", raising=False)
    (tmp_path / "config.yaml").write_text(
        f"operator: {{actor: anna}}\nstores: {{shop: {{uri: {place}}}}}\n"
        "profiles: {dev: {store: shop}, hub: {server: h}}\nservers: {h: {url: 'http://h'}}\n"
        "defaults: {store: shop}\n"
    )
    for name in (None, "shop", "dev", str(place)):
        opened = omnigraph.connect(name)
        assert (opened.uri, opened.actor) == (str(place), "anna")
    assert omnigraph.connect(actor="bo").actor == "bo"
    for name in ("hub", "https://graph.example.com"):
        with pytest.raises(EngineUnavailableError):
            omnigraph.connect(name)
