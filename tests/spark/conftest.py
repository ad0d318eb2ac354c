"""One Spark session for all tests of a process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.engines.spark.session import get_session, stop_session
from omnigraph.engines.spark.settings import read_settings

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    # Tasks are retried as on a cluster; small tests gain from a compiler that starts fast.
    settings = read_settings(
        os.environ.get("OMNIGRAPH_TEST_SPARK_MASTER", "local[2,3]"),
        config={
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.shuffle.partitions": "2",
        },
    )
    yield get_session(settings)
    stop_session()
