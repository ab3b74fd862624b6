"""The page on Spark: its server from pip is started as the page says, and a release with text is counted there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from docs.pages import PROJECT, blocks_of
from office import Office
from spark_servers import SPARK_HOME, closing_port

pytestmark = pytest.mark.soak

PAGE = (PROJECT / "docs" / "how-to" / "spark.md").read_text(encoding="utf-8")


def block(holding: str) -> str:
    """The text of the last block of the page that holds some words."""
    return [one.text for one in blocks_of(PAGE, "spark.md") if holding in one.text][-1]


def test_spark_from_pip_serves_a_release_as_the_page_says(office: Office, tmp_path: Path) -> None:
    if not (SPARK_HOME / "bin" / "spark-submit").exists() or shutil.which("java") is None:
        pytest.skip("needs Java and Spark: `make soak` installs Spark in .spark")
    with closing_port() as port:
        pass
    (python := tmp_path / "spark" / "bin" / "python").parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\necho '{SPARK_HOME}'\n")  # the page asks it where Spark is
    python.chmod(0o755)
    start = block("spark-submit").replace("15002", str(port))
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(["bash", "-euc", start], cwd=tmp_path, stdout=log, stderr=log, start_new_session=True)
    try:
        while "Spark Connect server started at: 127.0.0.1" not in (said := (tmp_path / "log").read_text()):
            assert server.poll() is None, said
            time.sleep(0.2)
        office.opened().write_spec(engine="spark")
        for line in block("--spark sc://127.0.0.1:15002").replace("15002", str(port)).splitlines():
            done = office.run(*line.split()[1:], "--store", office.store)
            assert done.code == 0, done.err
        audit = json.loads((office.published() / "audit.json").read_text())
        assert audit["engine"] == "spark"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)
