"""Engines that speak Spark Connect, for tests: Sail in this process, and Spark itself with several workers."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
SPARK_HOME = Path(os.environ.get("DPHIST_SPARK_HOME", PROJECT / ".spark" / "pyspark"))
START_SECONDS = 600  # of a machine that does much else


@contextmanager
def sail() -> Iterator[str]:
    """The address of a server of Sail, without a JVM."""
    server = pytest.importorskip("pysail.spark", reason="needs pysail").SparkConnectServer(port=0)
    pytest.importorskip("pyspark.sql.connect.session", reason="needs pyspark-client")
    server.start(background=True)
    try:
        yield f"sc://127.0.0.1:{server.listening_address[1]}"
    finally:
        server.stop()


@contextmanager
def local_cluster(folder: Path, workers: int = 2, megabytes: int = 1024, **conf: str) -> Iterator[str]:
    """The address of Spark Connect with workers in JVMs of their own; its event log and output are in a folder."""
    if not (SPARK_HOME / "bin" / "spark-submit").exists() or shutil.which("java") is None:
        pytest.skip("needs Java and Spark: `make soak` installs Spark in .spark")
    with closing_port() as port:
        pass
    (folder / "events").mkdir(parents=True)
    settings = {
        **{"spark.connect.grpc.binding.port": str(port), "spark.connect.grpc.binding.address": "127.0.0.1"},
        **{"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{folder}/events"},
        "spark.eventLog.compress": "false",  # so that it can be searched
        **{"spark.executor.memory": f"{megabytes}m", "spark.ui.enabled": "false", "spark.driver.memory": "2g", **conf},
    }
    words = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", f"local-cluster[{workers},1,{megabytes}]"]
    words += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    words += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    own = {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(folder / "work")}
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            words, env=os.environ | own, stdout=log, stderr=log, start_new_session=True, cwd=folder
        )
    try:
        _await(server, port)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)


@contextmanager
def closing_port() -> Iterator[int]:
    """A port that is free now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        yield listening.getsockname()[1]


def _await(server: subprocess.Popen[bytes], port: int) -> None:
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends and server.poll() is None:
        with socket.socket() as asking:
            if asking.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError("Spark did not start; see its log")
