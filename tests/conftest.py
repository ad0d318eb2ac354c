"""What holds for every test: fault points are checked, chance is fixed, files are in memory."""

from __future__ import annotations

import os

# Before anything imports omnigraph: set to nothing, the variable arms nothing but turns the check
# of names on, here and in every process that a test starts.
os.environ.setdefault("OMNIGRAPH_FAULTS", "")

# A developer's own configuration is nothing that tests may depend on.
os.environ["OMNIGRAPH_HOME"] = os.path.join(os.sep, "nonexistent", "omnigraph")

import pytest
from hypothesis import HealthCheck, settings
from tests.support.memoryfolder import choose_folder
from tests.support.motoserver import second_s3_root, second_s3_server  # noqa: F401
from tests.support.pagerunner import folder, shop  # noqa: F401  # fixtures for every test
from tests.support.s3 import s3_root, s3_server  # noqa: F401

# The same examples every time, and no deadline: the machine may be busy with other tests.
settings.register_profile(
    "house", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")

choose_folder()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"s3_server", "second_s3_server"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.s3)
        # One session for all: tests that use it run in the same worker. Those of Spark that start
        # processes of their own may run beside it.
        shares = "spark" in getattr(item, "fixturenames", ())
        if shares or (item.get_closest_marker("spark") and item.path.parent.name != "spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
