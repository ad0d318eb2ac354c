"""The one Spark session of a process: found, started, reused and stopped.

    spark = get_session(read_settings(master="local[4]"))

A session that the caller's program already has is used as it is. Otherwise one is started, lean
and silent, and stopped when the program ends.

Guarantees: at most one session per process; a missing Java, a missing package and a cluster that
does not respond are distinguished in `EngineUnavailableError`, within seconds; executors on other
machines get this package along.
Deliberately absent: anything that reads or writes a graph. In particular Lance is not touched in
Spark's Python daemon, which forks: it is first used inside tasks.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from omnigraph.engines.spark.archive import archive_options, is_recording
from omnigraph.engines.spark.settings import SparkSettings, read_settings
from omnigraph.engines.spark.sparkerrors import rpc_errors
from omnigraph.errors import EngineUnavailableError

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import SparkSession

_CONNECT_TIMEOUT_S = 5.0
_LOG_TAIL = 2000
_CONNECT_PORT = 15002

_guard = threading.RLock()
_ours: Any = None  # the session that we started, and must stop
_told: SparkSettings | None = None  # its last settings
_log: Path | None = None


def get_session(
    settings: SparkSettings | None = None, meanwhile: Callable[[], None] | None = None
) -> SparkSession:
    """The session of this process; started when there is none. `meanwhile` is called when Spark's
    machine has been started and must be waited for."""
    global _ours, _told
    wanted = settings or read_settings()
    with _guard:
        found = _active()
        if found is not None:
            _apply(found, wanted)
            return found
        started = _connect(wanted) if wanted.remote else _start(wanted, meanwhile)
        _ours, _told = started, wanted
        atexit.register(stop_session)
        return started


def has_session() -> bool:
    """Whether this process has a session already, ours or its program's."""
    with _guard:
        return _active() is not None


def stop_session() -> None:
    """Stop the session, if it is one that we started."""
    global _ours
    with _guard:
        if _ours is not None:
            session, _ours = _ours, None
            atexit.unregister(stop_session)
            _hurry(session)
            session.stop()


def _hurry(session: Any) -> None:
    """PySpark waits up to a second for a thread of its own that sleeps between two looks, the one
    that hears what accumulators come to. It may end while Spark's machine stops."""
    context = session.sparkContext if is_classic(session) else None
    server = getattr(context, "_accumulatorServer", None)
    if context is not None and server is not None:
        context._accumulatorServer = None
        threading.Thread(target=server.shutdown, daemon=True).start()


def is_classic(spark: SparkSession) -> bool:
    """Whether the driver lives in this process, rather than behind a Connect endpoint."""
    return hasattr(spark, "_jsparkSession")


def parallelism(spark: SparkSession) -> int:
    """How many tasks run side by side."""
    if is_classic(spark):
        return max(1, int(spark.sparkContext.defaultParallelism))
    return int(spark.conf.get("spark.default.parallelism", None) or os.cpu_count() or 1)


def _active() -> SparkSession | None:
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is None and _ours is not None:
        found = _ours
    if found is None:
        context = sys.modules["pyspark"].SparkContext
        found = SparkSession.builder.getOrCreate() if context._active_spark_context else None
    return found


def _apply(spark: SparkSession, settings: SparkSettings) -> None:
    """Settings of SQL can change in a running session; the others are what they are. To look at
    one makes Spark start its SQL, which a load does without."""
    global _told
    if spark is _ours:
        if settings == _told:
            return
        _told = settings
    wanted = settings.spark_config() if spark is _ours else dict(settings.config)
    for name, value in wanted.items():
        if name.startswith("spark.sql.") and spark.conf.get(name, None) != value:
            spark.conf.set(name, value)


def require_pyspark() -> None:
    """Raise `EngineUnavailableError` if PySpark is not installed."""
    try:
        import_module("pyspark")
    except ImportError as error:
        raise EngineUnavailableError(
            "The spark engine needs the package pyspark, which is not installed.",
            hint="Install it: pip install 'omnigraph[spark]'; or use --engine embedded.",
        ) from error


def find_java() -> str:
    """The Java program that Spark will start."""
    home = os.environ.get("JAVA_HOME")
    found = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not found or not os.access(found, os.X_OK):
        where = f"under JAVA_HOME ({home})" if home else "on the PATH"
        raise EngineUnavailableError(
            f"The spark engine needs Java 17 or newer, and there is none {where}.",
            hint="Install a JDK and set JAVA_HOME; or use --engine embedded, or a Spark Connect "
            "endpoint (--remote).",
        )
    return found


def jars_folder() -> Path:
    """Where the classes of the Spark are that will be started."""
    from pyspark.find_spark_home import _find_spark_home

    return Path(str(_find_spark_home())) / "jars"


def _start(settings: SparkSettings, meanwhile: Callable[[], None] | None) -> SparkSession:
    require_pyspark()
    java = find_java()
    _require_reachable(settings)
    from pyspark import SparkConf, SparkContext
    from pyspark import __version__ as version
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    # Workers would otherwise run the first python3 of the PATH, which may lack our packages.
    if settings.place.startswith("local"):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    conf = SparkConf(loadDefaults=False).setMaster(settings.place)
    for name, value in settings.spark_config().items():
        conf.set(name, value)
    java_options = [conf.get("spark.driver.extraJavaOptions", "") or ""]
    archive = archive_options(java, version, jars_folder())
    java_options += archive
    conf.set("spark.driver.extraJavaOptions", " ".join(java_options).strip())
    try:
        with _spawning(meanwhile):
            gateway = launch_gateway(  # type: ignore[no-untyped-call]
                conf, popen_kwargs=_streams(settings)
            )
        context = SparkContext(conf=conf, gateway=gateway)
        context.setLogLevel("WARN" if settings.verbose else "OFF")
        _ship_package(context, settings)
        session = SparkSession(context)
        if is_recording(archive):
            _exercise(session)
        return session
    # Py4J's own errors have no common class with PySpark's.
    except (PySparkException, OSError, RuntimeError, _java_error()) as error:
        raise _not_started(settings, error) from error


def _exercise(session: SparkSession) -> None:
    """What every later session finds in the archive: this one may be asked for loads alone, which
    need no SQL, and queries would start slowly for as long as the archive lasts."""
    counted = session.range(0, 2, 1, 2).groupBy("id").count()
    counted.mapInArrow(_same, "id long, count long").collect()


def _same(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
    return batches


@contextmanager
def _spawning(meanwhile: Callable[[], None] | None) -> Iterator[None]:
    """Let PySpark start its machine without a real fork, which Lance in this process might not
    survive. PySpark forks to keep Ctrl-C from the machine; a process group does that too."""
    module: Any = import_module("pyspark.java_gateway")
    original = module.Popen

    def spawn(command: list[str], **settings: Any) -> subprocess.Popen[bytes]:
        settings.pop("preexec_fn", None)
        started = subprocess.Popen(command, process_group=0, **settings)
        if meanwhile is not None:
            meanwhile()
        return started

    module.Popen = spawn
    try:
        yield
    finally:
        module.Popen = original


def _java_error() -> type[Exception]:
    found: type[Exception] = import_module("py4j.protocol").Py4JError
    return found


def _streams(settings: SparkSettings) -> dict[str, Any]:
    """Where the virtual machine's chatter goes: to a file that is read when it fails."""
    global _log
    if settings.verbose:
        return {}
    handle, name = tempfile.mkstemp(prefix="omnigraph-spark-", suffix=".log")
    _log = Path(name)
    atexit.register(_log.unlink, missing_ok=True)
    return {"stdout": handle, "stderr": handle}


def _not_started(settings: SparkSettings, error: Exception) -> EngineUnavailableError:
    said = _log.read_text(errors="replace")[-_LOG_TAIL:] if _log and _log.exists() else ""
    if "UnsupportedClassVersionError" in said or "Unrecognized option" in said:
        return EngineUnavailableError(
            "Spark did not start: this Java is too old.",
            hint="Install Java 17 or newer and set JAVA_HOME.",
            log=said,
        )
    return EngineUnavailableError(
        f"Spark did not start on {settings.shown}: {str(error).splitlines()[0]}",
        hint="Set OMNIGRAPH_SPARK_LOG=true to see the log of Spark; or use --engine embedded.",
        log=said,
    )


def _require_reachable(settings: SparkSettings) -> None:
    """Spark itself would retry for a minute before it reports an unreachable endpoint."""
    place = settings.place
    if not place.startswith(("spark://", "sc://")):
        return
    tried = []
    for part in place.split("://", 1)[1].split(","):
        parts = urlsplit(f"//{part}")
        port = parts.port or (_CONNECT_PORT if place.startswith("sc://") else 7077)
        try:
            with socket.create_connection((parts.hostname or "", port), _CONNECT_TIMEOUT_S):
                return
        except OSError as error:
            tried.append(f"{parts.hostname}:{port} ({error.strerror or error})")
    raise EngineUnavailableError(
        f"The Spark cluster {settings.shown} cannot be reached: {', '.join(tried)}.",
        hint="Check the address and that the cluster runs; or leave it out to run on this machine.",
    )


def _connect(settings: SparkSettings) -> SparkSession:
    require_pyspark()
    try:
        import_module("grpc")
    except ImportError as error:
        raise EngineUnavailableError(
            "A Spark Connect endpoint needs packages that are not installed.",
            hint="Install them: pip install 'omnigraph[spark]'.",
        ) from error
    _require_reachable(settings)
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    expected: tuple[type[Exception], ...] = (PySparkException, OSError, RuntimeError)
    expected += rpc_errors()
    try:
        spark = SparkSession.builder.remote(settings.place).getOrCreate()
        _ = spark.version  # the first word with the endpoint: does it take the token?
        for name, value in settings.spark_config().items():
            # A resident session got our settings when it was started.
            if name.startswith("spark.sql.") and (name in settings.config or not settings.resident):
                spark.conf.set(name, value)
        if not settings.resident:
            spark.addArtifacts(str(_package()), pyfile=True)
        elif not settings.config:
            spark.release_session_on_close = False  # type: ignore[attr-defined]
    except expected as error:
        raise _not_connected(settings, error) from error
    return spark


def _not_connected(settings: SparkSettings, error: Exception) -> EngineUnavailableError:
    text = str(error)
    if "UNAUTHENTICATED" in text or "Unauthenticated" in text:
        hint = "Give the endpoint's token: sc://host:15002/;token=…"
        if settings.resident:
            hint = "Restart it: omnigraph spark stop, then omnigraph spark start."
        return EngineUnavailableError(f"{settings.shown} refused the token.", hint=hint)
    reason = (text.strip().splitlines() or [type(error).__name__])[0]
    return EngineUnavailableError(
        f"The Spark Connect endpoint {settings.shown} cannot be used: {reason}",
        hint="Check that it runs Spark 4; or leave it out to run Spark on this machine.",
        log=text[-_LOG_TAIL:],
    )


def _ship_package(context: Any, settings: SparkSettings) -> None:
    if not settings.is_local:
        context.addPyFile(str(_package()))


def _package() -> Path:
    """This package as a zip file, for executors that do not have it."""
    source = Path(__file__).resolve().parents[2]
    target = Path(tempfile.mkdtemp(prefix="omnigraph-package-")) / "omnigraph.zip"
    atexit.register(shutil.rmtree, target.parent, ignore_errors=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(source.rglob("*.py")):
            archive.write(file, Path("omnigraph") / file.relative_to(source))
    return target
