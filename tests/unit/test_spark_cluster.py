"""Spark itself with two workers in JVMs of their own: the answers of DuckDB, and nothing of ours in what it writes."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import test_spark_engine
from source_scenario import AGE, SECRET
from spark_scenario import KEY, counted_by_both
from spark_servers import SPARK_HOME, closing_port, local_cluster

pytestmark = pytest.mark.soak

# Bytes that are UTF-8 in one definition and not in another: cut off, overlong, half a pair, beyond the last one.
BYTES = [
    *(b"a\xff", b"\xc3", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xf4\x90\x80\x80"),
    *(
        b"\xf8\x88\x80\x80\x80",
        b"\xef\xbf\xbd",
        b"\xef\xbf\xbf",
        b"\xf0\x9f\x98\x80",
        b"a\0b",
        b"a\0",
        b"?",
        b"",
        b"ann",
    ),
    *(b"\x80", b"ann\xff", b"\xc3\xa9", b"e\xcc\x81", b"x" * 64, b"x" * 65, b"\xff" * 65, b"\xef\xbb\xbfann", b"\xc2"),
]
CLASSIC = """
import sys, unittest.mock
from pyspark.sql import SparkSession
SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false").config(
    "spark.sql.shuffle.partitions", "4").getOrCreate()
sys.path[:0] = sys.argv[1:]
import test_spark_engine as checks
checks.test_the_kept_rows_of_every_unit_are_those_that_duckdb_keeps("session", 3)
checks.test_text_is_counted_alike_where_it_is_known_to_be_utf8("session")
print("alike")
"""


@pytest.fixture(scope="module")
def page() -> str:
    with closing_port() as port:
        return f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def cluster(folder: Path, page: str) -> Iterator[str]:
    port = page.rpartition(":")[2]
    conf = {"spark.ui.enabled": "true", "spark.ui.port": port, "spark.sql.maxPlanStringLength": "10000000"}
    conf |= {"spark.sql.debug.maxToStringFields": "1000", "spark.sql.shuffle.partitions": "4"}
    with local_cluster(folder, **conf) as address:
        yield address


@pytest.mark.parametrize(
    "check",
    [
        test_spark_engine.test_numbers_categories_and_truth_values_are_counted_as_by_duckdb,
        test_spark_engine.test_units_of_several_columns_and_of_more_equal_rows_than_a_block,
        test_spark_engine.test_times_that_are_huge_infinite_or_on_an_end_of_a_period_are_read_alike,
        test_spark_engine.test_text_is_counted_alike_where_it_is_known_to_be_utf8,
    ],
)
def test_spark_counts_as_duckdb_does(cluster: str, check: Callable[[str], None]) -> None:
    check(cluster)


@pytest.mark.parametrize("bound", [1, 3, 50])
def test_spark_keeps_the_rows_that_duckdb_keeps(cluster: str, bound: int) -> None:
    test_spark_engine.test_the_kept_rows_of_every_unit_are_those_that_duckdb_keeps(cluster, bound)


def broken(rows: list[bytes]) -> pa.Array:
    """Bytes that a file calls text."""
    held = pa.array(rows, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(rows), held.buffers())


def test_text_that_is_not_utf8_belongs_to_nobody_and_matches_nothing(cluster: str) -> None:
    names = BYTES * 4
    random = np.random.default_rng(5).integers(0, 256, (200, 3), dtype=np.uint8)
    names += [row.tobytes() for row in random]
    files = {"a.parquet": pa.table({"person": broken(names), "ward": broken(names[::-1]), "age": [5] * len(names)})}
    ward = {"column": "ward", "values": ["ann", "é", "x" * 65], "other": True}
    for unit in ("person", ["person", "ward"]):
        here, there = counted_by_both(cluster, files, axes=[ward], privacy_unit=unit, max_rows_per_unit=2)
        assert here.tolist() == there.tolist() and here.sum() > 10


def test_neither_the_key_nor_a_value_is_in_spark_s_log_or_on_its_pages(cluster: str, folder: Path, page: str) -> None:
    """The number of rows is there: Spark itself counts what each step reads."""
    names = [f"{SECRET}{number}" for number in range(50)] * 4
    files = {"a.parquet": pa.table({"person": names, "age": [5] * 200, "ward": names[::-1]})}
    ward = {"column": "ward", "values": ["surgery"], "other": True}
    here, there = counted_by_both(cluster, files, axes=[AGE, ward], max_rows_per_unit=2)
    assert here.tolist() == there.tolist()
    addresses = ["/connect/", "/SQL/", "/jobs/", "/stages/", "/environment/", "/api/v1/applications"]
    told = {address: fetched(page + address) for address in addresses}
    application = told["/api/v1/applications"].decode().split('"id" : "')[1].partition('"')[0]
    queries = f"/api/v1/applications/{application}/sql?details=true&planDescription=true&length=1000"
    told[queries] = fetched(page + queries)
    # Workers of a local cluster write what they say beside Spark's own files.
    written = [*folder.rglob("*"), *(SPARK_HOME / "work").rglob("std*")]
    told |= {str(path): path.read_bytes() for path in written if path.is_file()}
    assert any(place.endswith("stderr") for place in told)
    assert b"LocalTableScan" in told[queries] and any(b"SparkListenerSQL" in text for text in told.values())
    secrets = [KEY, KEY.hex().encode(), KEY.hex().upper().encode(), base64.b64encode(KEY), SECRET.encode()]
    secrets += [repr(KEY).encode()[2:-1], ", ".join(map(str, KEY[:8])).encode(), ",".join(map(str, KEY[:8])).encode()]
    for place, text in told.items():
        assert not any(secret in text for secret in secrets), place


def fetched(address: str) -> bytes:
    with urllib.request.urlopen(address) as answer:
        found: bytes = answer.read()
    return found


def test_the_active_classic_session_counts_as_duckdb_does(cluster: str, tmp_path: Path) -> None:
    """In a process of its own, with Spark's own PySpark in the place of its small client."""
    here = Path(__file__).parent
    archives = sorted((SPARK_HOME / "python" / "lib").glob("*.zip"))
    path = os.pathsep.join([*map(str, archives), os.environ.get("PYTHONPATH", "")])
    own = {"PYTHONPATH": path, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    words = [sys.executable, "-c", CLASSIC, str(here), str(here.parent), str(here.parents[1])]
    done = subprocess.run(words, cwd=tmp_path, env=os.environ | own, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("alike\n"), done.stdout[-2000:] + done.stderr[-2000:]
