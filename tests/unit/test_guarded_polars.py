"""Wherever Polars works on records it spills nothing and shows nothing, and a process is as before afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest

import dphist_pipeline as dph
from dphist_pipeline.base.guarded_polars import UNLIMITED, guarded_polars
from dphist_pipeline.confidential.reading.source import SourceRefused
from dphist_pipeline.local.value_files import read_values

SPILLING = """
import sys
from pathlib import Path
from types import SimpleNamespace
import polars as pl
from dphist_pipeline.confidential import cube
from dphist_pipeline.confidential.reading.source import SourceRefused
from dphist_pipeline.releasing._frame_files import open_frame
spilled, numbers = Path(sys.argv[1]), pl.LazyFrame({"unit": range(300_000)})
many = numbers.group_by(pl.col("unit") * 7 % 1000).agg(pl.len())
def work(*given):
    many.collect(engine="streaming")
    raise MemoryError
cube._count = work
try: cube.write_cube(SimpleNamespace(source=SimpleNamespace(written="records")), spilled, spilled)
except SourceRefused: assert not spilled.exists(), "counting"
open_frame(many).write(["len"], Path(sys.argv[2]))
assert not spilled.exists(), "a frame"
many.sink_parquet(sys.argv[2])
assert spilled.exists(), "nothing shown"
"""


@pytest.mark.slow
def test_neither_counting_nor_writing_a_frame_spills_outside_the_runs_folder(tmp_path: Path):
    little = {"POLARS_OOC_MEMORY_BUDGET_MB": "1", "POLARS_OOC_SPILL_MIN_BYTES": "1", "POLARS_OOC_DRIFT_THRESHOLD": "1"}
    environment = os.environ | little | {"POLARS_OOC_SPILL_DIR": str(tmp_path / "spill")}
    files = [tmp_path / "spill", tmp_path / "frame.parquet"]
    done = subprocess.run([sys.executable, "-c", SPILLING, *files], env=environment, check=False)
    assert done.returncode == 0


def test_a_panic_while_a_frame_is_written_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    frame = pl.LazyFrame({"age": [1]}).select(pl.int_range(0, 2**62).alias("age"))
    counts = dph.count_cube(frame, [{"column": "age", "start": 0, "stop": 9, "width": 1}], privacy_unit="row")
    with pytest.raises(SourceRefused):
        dph.sanitize(counts, mechanism="geometric", epsilon=1)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("before", [None, "1"])
def test_the_environment_is_as_before_afterwards(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in UNLIMITED:
        monkeypatch.delenv(name, raising=False)
        if before is not None:
            monkeypatch.setenv(name, before)
    with pytest.raises(ValueError), guarded_polars():
        assert {name: os.environ[name] for name in UNLIMITED} == UNLIMITED
        raise ValueError
    assert {os.environ.get(name) for name in UNLIMITED} == {before}


def test_values_of_contributors_are_read_so_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    collect = pl.LazyFrame.collect
    monkeypatch.setattr(pl.LazyFrame, "collect", lambda *given: seen.append(dict(os.environ)) or collect(*given))
    pl.DataFrame({"age": [1.0]}).write_parquet(tmp_path / "values.parquet")
    assert read_values(tmp_path / "values.parquet", "age", "row")[1].tolist() == [1.0]
    assert all(UNLIMITED.items() <= environment.items() for environment in seen) and seen


def test_one_caller_at_a_time_changes_the_process(capfd: pytest.CaptureFixture[str]) -> None:
    """Else the second would take the first one's null device for the standard error to go back to."""
    inside, leave, entered = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        with guarded_polars():
            inside.set()
            leave.wait(10)

    def second() -> None:
        with guarded_polars():
            entered.set()

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert inside.wait(10)
    threads[1].start()
    assert not entered.wait(0.1)
    os.write(2, b"while one works")
    leave.set()
    for thread in threads:
        thread.join(10)
    os.write(2, b"afterwards")
    assert entered.is_set() and capfd.readouterr().err == "afterwards"


def test_a_process_without_a_standard_error_works(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def closed(descriptor: int) -> int:
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(os, "dup", closed)
        with guarded_polars():
            pass
    os.write(2, b"afterwards")
    assert capfd.readouterr().err == "afterwards"
