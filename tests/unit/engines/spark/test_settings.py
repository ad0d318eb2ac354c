from __future__ import annotations

import pytest

from omnigraph.engines.spark.settings import parse_config, read_settings
from omnigraph.errors import InvalidArgumentError


def test_without_a_word_spark_runs_on_this_machine() -> None:
    settings = read_settings(environ={})
    assert settings.place == "local[*]"
    assert settings.is_local
    assert settings.spark_config()["spark.ui.enabled"] == "false"


def test_what_the_caller_names_wins_over_the_environment() -> None:
    environ = {"OMNIGRAPH_SPARK_MASTER": "local[3]", "OMNIGRAPH_SPARK_CONF": "spark.a=1;spark.b=2"}
    settings = read_settings(config={"spark.b": "3"}, environ=environ)
    assert settings.place == "local[3]"
    assert settings.spark_config()["spark.a"] == "1"
    assert settings.spark_config()["spark.b"] == "3"
    assert read_settings("local[5]", environ=environ).place == "local[5]"
    assert read_settings(remote="sc://h:1", environ=environ).place == "sc://h:1"


def test_a_local_cluster_is_no_local_session() -> None:
    settings = read_settings("local-cluster[2,1,1024]", environ={})
    assert not settings.is_local
    assert settings.spark_config()["spark.driver.host"] == "127.0.0.1"


def test_workers_on_this_machine_are_reached_through_unix_sockets() -> None:
    name = "spark.python.unix.domain.socket.enabled"
    assert read_settings("local[2]", environ={}).spark_config()[name] == "true"
    assert name not in read_settings("spark://h:7077", environ={}).spark_config()
    kept = read_settings("local[2]", config={name: "false"}, environ={})
    assert kept.spark_config()[name] == "false"


@pytest.mark.parametrize("text", ["a=b", "spark.a", "nothing"])
def test_a_setting_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_config(text)


def test_a_master_and_an_endpoint_exclude_each_other() -> None:
    with pytest.raises(InvalidArgumentError):
        read_settings("local[2]", "sc://h:1", environ={})
    with pytest.raises(InvalidArgumentError, match="no Spark Connect endpoint"):
        read_settings(remote="http://h:1", environ={})
