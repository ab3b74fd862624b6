"""Rule 4: nothing that was computed from records leaves the confidential side but through a measurement."""

from __future__ import annotations

import logging
import os
import shutil
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import canary
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from canary import fails
from office import FILES, Office

from dphist_pipeline.confidential import cube, noise
from dphist_pipeline.confidential.reading import _positions as positions
from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.mechanisms.geometric import Geometric
from dphist_pipeline.publishing import release_files
from dphist_pipeline.releasing import release
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import Store
from examples import mostly_soaked

pytestmark = pytest.mark.draws_alike

Patch = pytest.MonkeyPatch


class Watched:
    """An office whose every word is kept: both streams down to their file descriptors, logs, warnings, exceptions."""

    def __init__(
        self, office: Office, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: Patch
    ) -> None:
        self.office, self._capfd, self._caplog = office, capfd, caplog
        for name in ("TMPDIR", "HOME"):
            (office.folder / name).mkdir()
            monkeypatch.setenv(name, str(office.folder / name))
        monkeypatch.setattr("tempfile.tempdir", None)
        monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: canary.frozen_noise(size))
        caplog.set_level(logging.DEBUG)
        office.opened().write_spec(**canary.CHANGES)
        office.write_records(canary.records())

    def leaks(self, code: int) -> list[str]:
        """What leaks from a release by the command line, which must end with this code, and by the library."""
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            ran = self.office.release()
            in_json = self.office.release("--json")
            error = self._error() if code else None
        assert (ran.code, in_json.code, error is not None) == (code, code, bool(code))
        outside = self._capfd.readouterr()
        return canary.leaks(
            self.office,
            out=ran.out + in_json.out + outside.out,
            err=ran.err + in_json.err + outside.err,
            log="\n".join(f"{record.getMessage()} {record.exc_text}" for record in self._caplog.records),
            warnings="\n".join(str(warning.message) for warning in warned),
            exception=canary.chain(error),
        )

    def _error(self) -> BaseException:
        with pytest.raises(Exception) as caught:
            release.release(ReleaseSpec.load(self.office.folder / "spec.yaml"), Store.open(self.office.store))
        return caught.value


@pytest.fixture
def watched(
    office: Office, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: Patch
) -> Watched:
    return Watched(office, capfd, caplog, monkeypatch)


def test_a_release_and_its_replay_leak_nothing(watched: Watched) -> None:
    assert watched.leaks(code=0) == []
    assert sorted(path.name for path in watched.office.published().iterdir()) == FILES
    table = pq.read_table(watched.office.published() / "histogram.parquet")
    noisy = np.array(table["estimate"]) - canary.frozen_noise(table.num_rows)
    expected = [canary.SURGERY, canary.MEDICINE, canary.OTHER]
    assert sorted(noisy[noisy > 0]) == sorted(expected), "the canary's counts reach the mechanism"


@pytest.mark.slow
def test_a_quality_table_leaks_nothing_but_its_noisy_numbers(watched: Watched) -> None:
    watched.office.write_spec(**canary.CHANGES, quality={"share": "1/2", "rows": 3, "by": ["ward"]})
    assert watched.leaks(code=0) == []
    table = pq.read_table(watched.office.published() / "quality.parquet").to_pylist()
    exact = [row["estimate"] % canary.FROZEN_NOISE for row in table]
    assert exact[:3] == [canary.SURGERY + canary.MEDICINE, canary.OTHER, 0], "exact numbers reach the measurements"


HOURS = {"column": "hour", "start": 0, "stop": 24, "width": 24, "other": True}
DECLARED: dict[str, Any] = {
    **canary.CHANGES,
    "derive": [
        {"column": "noted", "first_of": [{"column": "age_text", "format": "%d.%m.%Y"}, {"column": "ward"}]},
        {"column": "years", "years_between": ["age_text", "noted"]},
        {"column": "hour", "part": "hour", "of": "noted"},
        {"column": "start", "first_letters": 3, "of": "ward"},
    ],
    "keep": [{"column": "age_text", "from": 0, "to": 99}, {"column": "start", "is": ["sur", "med"]}],
    "axes": [canary.CHANGES["axes"][0], {"column": "start", "values": ["sur", "med"]}, HOURS],
}


@pytest.mark.slow
def test_columns_that_are_made_of_tokens_and_rows_that_are_left_out_leak_nothing(watched: Watched) -> None:
    watched.office.write_spec(**DECLARED)
    assert watched.leaks(code=0) == []
    table = pq.read_table(watched.office.published() / "histogram.parquet")
    noisy = np.array(table["estimate"]) - canary.frozen_noise(table.num_rows)
    assert sorted(noisy[noisy > 0]) == sorted([canary.SURGERY, canary.MEDICINE]), "kept rows reach the mechanism"


def truncated(office: Office) -> None:
    source = office.folder / "data" / "admissions.parquet"
    source.write_bytes(source.read_bytes()[:-30])


def damaged(office: Office) -> None:
    office.write_records(canary.records(), compression="none", use_dictionary=False)
    source = office.folder / "data" / "admissions.parquet"
    content = bytearray(source.read_bytes())
    content[4000:4400] = b"\xff" * 400
    source.write_bytes(content)


def wrong_type(office: Office) -> None:
    office.write_records({**canary.records(), "ward": [[canary.UNDECLARED]] * canary.TOTAL})


def missing_column(office: Office) -> None:
    records = canary.records()
    office.write_records({"patient": records["patient"], "age_text": records["age_text"], "wards": records["ward"]})


def no_header(office: Office) -> None:
    (office.folder / "data" / "admissions.csv").write_text(
        canary.csv(header=f"{canary.HEADER},{canary.NUMBER},surgery")
    )
    office.write_spec(**canary.CHANGES, source="data/admissions.csv")


def two_kinds(office: Office) -> None:
    office.write_records({**canary.records(), "age_text": [[canary.UNPARSABLE]] * canary.TOTAL}, "data/second.parquet")
    office.write_spec(**canary.CHANGES, source="data/*.parquet")


@pytest.mark.slow
@pytest.mark.parametrize(
    "harm", mostly_soaked([truncated, damaged, wrong_type, missing_column, no_header, two_kinds], [1, 2, 4])
)
def test_a_source_that_fails_leaks_nothing(watched: Watched, harm: Callable[[Office], None]) -> None:
    harm(watched.office)
    before = watched.office.entries()
    assert watched.leaks(code=1) == []
    assert watched.office.entries() == before


def test_a_csv_whose_rows_do_not_parse_leaks_nothing(watched: Watched) -> None:
    (watched.office.folder / "data" / "admissions.csv").write_text(canary.csv())
    watched.office.write_spec(**canary.CHANGES, source="data/admissions.csv")
    assert watched.leaks(code=0) == []


SECRET = f"{canary.UNDECLARED} {canary.NUMBER} {canary.TOTAL}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "name", "error"),
    mostly_soaked(
        [
            (cube.np, "save", OSError(28, "No space left on device", SECRET)),
            (cube, "count_bounded", ValueError(SECRET)),
            (Geometric, "release", RuntimeError(SECRET)),
            (release_files, "write_groups", pa.ArrowInvalid(SECRET)),
        ],
        [1, 3],
    ),
)
def test_a_failure_anywhere_leaks_nothing_and_the_same_command_finishes(
    watched: Watched, monkeypatch: Patch, where: Any, name: str, error: Exception
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(where, name, fails(error))
        ran = watched.office.release()
        assert ran.code == 1 and canary.leaks(watched.office, out=ran.out, err=ran.err) == []
    assert watched.leaks(code=0) == []
    assert [entry[1] for entry in watched.office.entries()].count("charged") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "error",
    mostly_soaked([pl.exceptions.ComputeError(SECRET), OSError(28, SECRET), MemoryError(SECRET)], [0]),
)
def test_what_polars_says_is_in_no_exception_either(watched: Watched, monkeypatch: Patch, error: Exception) -> None:
    monkeypatch.setattr(cube, "count_bounded", fails(error))
    assert watched.leaks(code=1) == []


def panics(*given: object) -> None:
    """As Polars does: what it was about goes to the file of standard error, past Python."""
    os.write(2, f"thread panicked at {SECRET}\n".encode())
    raise pl.exceptions.PanicException(SECRET)


@pytest.mark.slow
def test_what_polars_panics_about_is_on_no_standard_error(watched: Watched, monkeypatch: Patch) -> None:
    monkeypatch.setattr(cube, "count_bounded", panics)
    assert watched.leaks(code=1) == []


@pytest.mark.slow
def test_what_duckdb_says_is_in_no_exception_either(watched: Watched, monkeypatch: Patch) -> None:
    monkeypatch.setattr(positions, "_value", lambda axis: f"CAST({axis.column} AS DOUBLE)")
    with pytest.raises(duckdb.Error, match=canary.UNPARSABLE):
        duckdb.sql(f"SELECT CAST(age_text AS DOUBLE) FROM '{watched.office.folder}/data/admissions.parquet'").fetchall()
    assert watched.leaks(code=1) == []


def prints(counts: np.ndarray, folder: Path) -> None:
    print(f"counted {counts.sum():,} rows")


def logs(counts: np.ndarray, folder: Path) -> None:
    logging.getLogger("dphist_pipeline").debug("largest cell: %d", counts.max())


def warns(counts: np.ndarray, folder: Path) -> None:
    warnings.warn(f"{counts.max()} rows", stacklevel=2)


def leaves_a_file(counts: np.ndarray, folder: Path) -> None:
    shutil.copy(folder / "cube.npy", folder.parents[5] / "public" / "cube.npy")


def leaves_it_in_the_confidential_store(counts: np.ndarray, folder: Path) -> None:
    np.save(folder.parents[3] / "cube.npy", counts)


def writes_a_temporary_file(counts: np.ndarray, folder: Path) -> None:
    (folder.parents[6] / "TMPDIR" / "rows.txt").write_text(f"{counts.sum()}")


def fails_with_it(counts: np.ndarray, folder: Path) -> None:
    raise DphistError(f"cannot handle {counts.max():_} rows")


@pytest.mark.parametrize(
    ("leak", "code"),
    mostly_soaked(
        [
            (prints, 0),
            (logs, 0),
            (warns, 0),
            (leaves_a_file, 0),
            (leaves_it_in_the_confidential_store, 0),
            (writes_a_temporary_file, 0),
            (fails_with_it, 1),
        ],
        [1, 3, 6],
    ),
)
def test_the_canary_notices_a_planted_leak(
    watched: Watched, monkeypatch: Patch, leak: Callable[[np.ndarray, Path], None], code: int
) -> None:
    load = cube.load_cube

    def leaking(path: Path) -> np.ndarray:
        counts = load(path)
        leak(counts, path.parent)
        return counts

    monkeypatch.setattr(cube, "load_cube", leaking)
    assert watched.leaks(code) != []


@pytest.mark.slow
@pytest.mark.parametrize("width", [0, noise_law(Fraction(2)).half_width(Fraction(95, 100))])
def test_the_canary_notices_an_exact_count_in_a_published_column(
    watched: Watched, monkeypatch: Patch, width: int
) -> None:
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: np.full(size, width))
    assert watched.leaks(code=0) != []
