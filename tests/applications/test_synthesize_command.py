"""`dphist synthesize`: a file of synthetic records, a report, and one message for what cannot be."""

from __future__ import annotations

import os
from pathlib import Path

import by_hand
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from by_hand import AGE, WARD
from office import Ran, ran

from dphist_pipeline.publishing.published_files import PublishedFolder
from dphist_pipeline.releasing.store import Store

AXES = [AGE, WARD]
ENDS = ("--low", "age=-1", "--high", "age=100")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    opened = Store.create(tmp_path_factory.mktemp("project") / "store")
    by_hand.publish(opened.public, by_hand.estimate(AXES), AXES)
    by_hand.publish(opened.public, by_hand.estimate(AXES, scale=None), AXES, "unmeasured")
    far_below_zero = np.full((5, 3), 1_000.0)
    far_below_zero[1] = -900.0
    by_hand.publish(opened.public, by_hand.estimate(AXES, far_below_zero), AXES, "apart")
    withdrawn = by_hand.publish(opened.public, by_hand.estimate(AXES), AXES, "withdrawn")
    PublishedFolder(withdrawn.path).mark_withdrawn(
        {"reason": "a mistake", "at": "2026-03-11", "entry": 2}, opened.public
    )
    return opened


def synthesized(store: Store, file: Path, *words: str, release: str = "weekly") -> Ran:
    return ran("synthesize", release, "--output", file, "--store", store.root, *words)


@pytest.mark.slow
def test_a_file_is_written_and_told(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "drawn.parquet"
    done = synthesized(store, file, *ENDS, "--rows", "1000", "--seed", "7", "--whole-numbers", "age", "--report")
    assert done.code == 0, done.err
    assert "1,000 synthetic records" in done.out and "seed 7" in done.out and "age*ward" in done.out
    assert "All sums that were fitted lie within their 95 % bands." in done.out
    rows = pq.read_table(file)
    assert rows.num_rows == 1_000 and rows.schema.field("age").type == pa.int64()
    told = synthesized(store, tmp_path / "again.parquet", *ENDS, "--rows", "1000", "--seed", "7", "--json").json
    assert told["synthetic"] is True and told["rows"] == 1_000 and told["bands_not_reached"] == []


@pytest.mark.slow
def test_bands_that_were_not_reached_are_told(store: Store, tmp_path: Path) -> None:
    done = synthesized(store, tmp_path / "a.parquet", *ENDS, release="apart")
    facts = synthesized(store, tmp_path / "b.parquet", *ENDS, "--json", release="apart").json
    missed = facts["bands_not_reached"]
    lines = [line for line in done.out.splitlines() if "Not within the 95 % band" in line]
    assert len(lines) == len(missed) > 0 and {"age", "cells"} <= {one["sums_by"] for one in missed}
    assert "5 of 5 sums by age, up to 2,7" in "\n".join(lines)
    done = synthesized(store, tmp_path / "c.parquet", *ENDS, release="unmeasured")
    assert "no unbiased estimates" in done.out


@pytest.mark.slow
def test_a_file_that_is_there_stays_unless_the_user_says_so(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "there.parquet"
    file.write_text("mine")
    refused = synthesized(store, file, *ENDS)
    assert refused.code == 1 and "is there already" in refused.err and "--overwrite" in refused.err
    assert file.read_text() == "mine"
    assert synthesized(store, file, *ENDS, "--overwrite").code == 0
    assert pq.read_table(file).num_rows > 0


@pytest.mark.parametrize(
    ("words", "says", "code"),
    [
        (["--rows", "0"], "from 1 to 10,000,000,000", 1),
        (["--rows", "-5"], "from 1 to 10,000,000,000", 1),
        (["--rows", "99999999999999999999"], "from 1 to 10,000,000,000", 1),
        (["--rows", "many"], "--rows", 2),
        (["--seed", "-1"], "seed: takes", 1),
        (["--low", "age"], "as in age=120", 2),
        (["--high", "age=1", "--high", "age=2"], "as in age=120", 2),
        (["--whole-numbers", "ward"], "axis 'ward' has categories", 1),
        (["--period", "2020-01-06"], "no period of 'weekly' '2020-01-06' is published", 1),
        (["--target", "ward"], "go together", 2),
    ],
)
def test_wrong_options_are_refused_in_one_line(
    store: Store, tmp_path: Path, words: list[str], says: str, code: int
) -> None:
    ends = [] if "age" in " ".join(words) else list(ENDS)
    done = synthesized(store, tmp_path / "x.parquet", *ends, *words)
    assert done.code == code and says in done.err and len(done.err.splitlines()) == 1, done.err
    assert list(tmp_path.iterdir()) == []


def test_places_where_no_file_can_be_are_refused(store: Store, tmp_path: Path) -> None:
    for name, says in (("x.csv", "must end in .parquet"), ("no/x.parquet", "lies in no folder")):
        done = synthesized(store, tmp_path / name, *ENDS)
        assert done.code == 1 and says in done.err
    (tmp_path / "folder.parquet").mkdir()
    assert "is a folder" in synthesized(store, tmp_path / "folder.parquet", *ENDS, "--overwrite").err
    full = Path("/dev/full")
    if full.exists():
        (tmp_path / "link.parquet").symlink_to(full)
        done = synthesized(store, tmp_path / "link.parquet", *ENDS)
        assert done.code == 1 and "is there already" in done.err


def test_a_disk_that_refuses_leaves_no_draft(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_batch", full)
    done = synthesized(store, tmp_path / "x.parquet", *ENDS)
    assert done.code == 1 and "No space left on device" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_withdrawn_release_gives_no_records(store: Store, tmp_path: Path) -> None:
    done = synthesized(store, tmp_path / "x.parquet", *ENDS, release="withdrawn")
    assert done.code == 1 and "was withdrawn" in done.err and list(tmp_path.iterdir()) == []


def test_a_classifier_is_tested_on_public_records(store: Store, tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    random = np.random.default_rng(5)
    ages = random.integers(0, 90, 400)
    pq.write_table(pa.table({"age": ages, "ward": np.where(ages < 18, "surgery", "medicine")}), tmp_path / "p.parquet")
    words = (*ENDS, "--test-on", str(tmp_path / "p.parquet"), "--target", "ward", "--json")
    facts = synthesized(store, tmp_path / "x.parquet", *words).json
    assert facts["classifier"]["records"] == 400
    assert 0 <= facts["classifier"]["accuracy"] <= 1
    (tmp_path / "p.csv").write_text("years,ward\n1,surgery\n")
    for name, target, says in (
        ("p.csv", "ward", "have no column 'age'"),
        ("p.parquet", "age", "name an axis of categories"),
        ("p.parquet", "word", "Did you mean 'ward'"),
        ("none.parquet", "ward", "cannot be read"),
        ("p.txt", "ward", "must be a file that ends in"),
    ):
        words = (*ENDS, "--test-on", str(tmp_path / name), "--target", target)
        done = synthesized(store, tmp_path / "y.parquet", *words)
        assert done.code == 1 and says in done.err, done.err
    assert not (tmp_path / "y.parquet").exists()


def test_a_file_that_appears_while_rows_are_drawn_stays(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, write = tmp_path / "x.parquet", pq.ParquetWriter.write_batch

    def another_was_faster(writer: pq.ParquetWriter, batch: pa.RecordBatch) -> None:
        file.write_text("theirs")
        write(writer, batch)

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_batch", another_was_faster)
    done = synthesized(store, file, *ENDS)
    assert done.code == 1 and "is there already" in done.err
    assert file.read_text() == "theirs" and list(tmp_path.iterdir()) == [file]
