"""Settings of the Spark session, from flags, environment and configuration, in that order.

    OMNIGRAPH_SPARK_MASTER   local[*], local[4], spark://host:7077, yarn, k8s://…
    OMNIGRAPH_SPARK_REMOTE   sc://host:15002, a Spark Connect endpoint
    OMNIGRAPH_SPARK_CONF     more settings: spark.executor.memory=4g;spark.executor.cores=2
    OMNIGRAPH_SPARK_LOG      true: let Spark's own log through to standard error

Guarantees: a plain value; what the caller names wins over the environment.
Deliberately absent: starting anything.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.arguments import checked
from omnigraph.errors import InvalidArgumentError

MASTER_VARIABLE = "OMNIGRAPH_SPARK_MASTER"
REMOTE_VARIABLE = "OMNIGRAPH_SPARK_REMOTE"
CONF_VARIABLE = "OMNIGRAPH_SPARK_CONF"
LOG_VARIABLE = "OMNIGRAPH_SPARK_LOG"
LOCAL = "local[*]"

# Lean and exact: no web page, batches that suit columns, times in UTC, filters handed down.
_LEAN: Mapping[str, str] = {
    "spark.app.name": "omnigraph",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.shuffle.partitions": "16",
    "spark.driver.maxResultSize": "512m",
}
# On one machine only local processes connect to the driver, and its host name may not resolve.
_LEAN_LOCAL: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
# Through a TCP socket each task waits 40 ms for an acknowledgement before its rows flow.
_SOCKETS: Mapping[str, str] = {
    "spark.python.unix.domain.socket.enabled": str(hasattr(socket, "AF_UNIX")).lower(),
}
# Workers that are forked with the package in memory; it must be installed where they run.
_PRELOADED: Mapping[str, str] = {
    "spark.python.daemon.module": "omnigraph.engines.spark.daemon",
}


@checked
@dataclass(frozen=True)
class SparkSettings:
    """A master or a Connect endpoint, additional settings, and whether the log of Spark is shown.
    `resident`: the endpoint is the resident session of this machine and this version."""

    master: str | None = None
    remote: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    verbose: bool = False
    resident: bool = False

    @property
    def is_local(self) -> bool:
        """Whether executors are threads of this machine's driver."""
        return self.remote is None and (self.master or LOCAL).split("[")[0] == "local"

    @property
    def place(self) -> str:
        return self.remote or self.master or LOCAL

    @property
    def shown(self) -> str:
        """The address without secrets."""
        return self.place.partition("/;")[0]

    @property
    def is_open(self) -> bool:
        """Whether any session is suitable: no session and no startup setting was requested."""
        static = (name for name in self.config if not name.startswith("spark.sql."))
        return self.master is None and self.remote is None and next(static, None) is None

    def spark_config(self) -> dict[str, str]:
        """All settings of the session."""
        same_machine = self.remote is None and (self.master or LOCAL).startswith("local")
        local = {**_LEAN_LOCAL, **_SOCKETS, **_PRELOADED} if same_machine else {}
        return {**_LEAN, **local, **self.config}


def read_settings(
    master: str | None = None,
    remote: str | None = None,
    config: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> SparkSettings:
    """The settings of a caller, completed from the environment."""
    given = os.environ if environ is None else environ
    if master and master.startswith("sc://") and not remote:
        master, remote = None, master
    if master and remote:
        raise InvalidArgumentError(
            "Spark is reached by a master or by a Connect endpoint, not by both.",
            hint="Give one of --master and --remote.",
        )
    if not master and not remote:
        remote = given.get(REMOTE_VARIABLE) or None
        master = None if remote else given.get(MASTER_VARIABLE) or None
        if master and master.startswith("sc://"):
            master, remote = None, master
    if remote and not remote.startswith("sc://"):
        raise InvalidArgumentError(
            f"{remote!r} is no Spark Connect endpoint.", hint="Write it as sc://host:15002."
        )
    more = {**parse_config(given.get(CONF_VARIABLE, "")), **(config or {})}
    verbose = given.get(LOG_VARIABLE, "").strip().lower() in ("1", "true", "yes", "on")
    return SparkSettings(master, remote, more, verbose)


def parse_config(text: str) -> dict[str, str]:
    """`name=value` pairs with semicolons between them."""
    found: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        name, separator, value = item.partition("=")
        if not separator or not name.startswith("spark."):
            raise InvalidArgumentError(
                f"{item!r} is no Spark setting.", hint="Write it as spark.executor.memory=4g."
            )
        found[name.strip()] = value.strip()
    return found
