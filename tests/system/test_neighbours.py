"""Rule 5: what a privacy unit's rows hold decides nothing but the answers of the measurements.

Pairs of tables that differ in one unit give the same files, rows, schema, charge and words; with frozen answers of
measurements, the same bytes throughout the public store and the ledger.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from office import AGE, FILES, WARD, Office

from dphist_pipeline.confidential import noise
from dphist_pipeline.confidential.journal import Journal
from dphist_pipeline.ledger import opened
from examples import mostly_soaked

pytestmark = pytest.mark.stand_in("catalogue", "pictures", why="compares files of neighbours, not the catalogue")

SCHEMA = pa.schema(
    [("patient", pa.string()), ("age", pa.float64()), ("ward", pa.string()), ("day", pa.timestamp("us"))]
)
MARCH = datetime(2026, 3, 5)
DAYS = int(np.datetime64(MARCH, "us").astype(np.int64))
LATEST, EARLIEST = 2**63 - 1, -(2**63) + 1  # DuckDB's infinity and -infinity
PERIODS = {"period": "month", "period_column": "day", "period_format": "iso"}


def rows(patient: Any, age: Any, ward: Any, day: Any) -> pa.Table:
    """Rows of these columns; of one unit, if `patient` is a text."""
    size = max(len(column) for column in (age, ward, day))
    patients = patient if isinstance(patient, list) else [patient] * size
    days = pa.array(np.array(day, dtype=np.int64), pa.timestamp("us"))
    texts = [pc.cast(pa.array(column, pa.binary()), pa.string(), safe=False) for column in (patients, ward)]
    return pa.table([texts[0], pa.array(age, pa.float64()), texts[1], days], schema=SCHEMA)


OTHERS = rows(["ann", "bob", "bob", "cid"], [3, 30, 55, 120], ["surgery", "medicine", "x", None], [DAYS] * 4)
NOBODY = OTHERS.slice(0, 0)
NULLS = pa.table({"patient": ["zoe"] * 3} | {name: pa.nulls(3, SCHEMA.field(name).type) for name in SCHEMA.names[1:]})
UNITS = {
    "ordinary": rows("zoe", [40.0, 41.0], ["surgery", "surgery"], [DAYS] * 2),
    "all nulls": NULLS.cast(SCHEMA),
    "all nulls, the unit too": pa.table({name: pa.nulls(3, SCHEMA.field(name).type) for name in SCHEMA.names}),
    "undecodable bytes": rows("zoe", [1, 2], [b"\xff\xfe", b"surg\xe9ry"], [DAYS] * 2),
    "undecodable unit": rows(b"z\xff", [1], [b"\xc3"], [DAYS]),
    "not numbers": rows("zoe", [np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.8e308], ["surgery"] * 6, [DAYS] * 6),
    "text of all kinds": rows("zoe", [1] * 4, ["", "'; --", "\0", "x" * 100_000], [DAYS] * 4),
    "an endless name": rows("zoe" * 50_000, [1], ["surgery"], [DAYS]),
    "a million rows": rows("zoe", np.arange(1e6) % 100, ["surgery"] * 10**6, np.full(10**6, DAYS)),
    "the ends of time": rows("zoe", [1] * 4, ["surgery"] * 4, [LATEST, EARLIEST, LATEST - 1, EARLIEST - 1]),
    "another month": rows("zoe", [1], ["surgery"], [DAYS + 40 * 86_400 * 10**6]),
}
# How many of a unit's rows count, of the two that may.
KEPT = dict.fromkeys(UNITS, 2) | dict.fromkeys(
    ["all nulls", "all nulls, the unit too", "undecodable unit", "the ends of time", "another month"], 0
)
KEPT |= {"an endless name": 1, "nobody and one row": 1, "nobody and nulls": 0}
PAIRS = {name: (OTHERS, pa.concat_tables([OTHERS, unit])) for name, unit in UNITS.items()}
PAIRS |= {"nobody and one row": (NOBODY, UNITS["ordinary"].slice(0, 1)), "nobody and nulls": (NOBODY, NULLS)}

OF_EACH_KIND = (
    "all nulls, the unit too",
    "undecodable unit",
    "text of all kinds",
    "a million rows",
    "the ends of time",
    "nobody and one row",
)

CSV_OTHERS = b"patient,age,ward,day\nann,3,surgery,2026-03-05\nbob,30,medicine,2026-03-05\n"
CSV_UNITS = {
    "ordinary": (1, b"zoe,3,surgery,2026-03-05\n"),
    "not numbers": (2, b"zoe,abc,surgery,2026-03-05\nzoe,nan,surgery,2026-03-05\nzoe,1e999,,2026-03-05\n"),
    "the ends of time": (0, b"zoe,3,x,infinity\nzoe,3,x,-infinity\nzoe,3,x,99999-01-01\nzoe,3,x,soon\n"),
    "undecodable bytes": (1, b"zoe,3,surg\xe9ry,2026-03-05\n"),
    "stray quotes": (1, b'zoe,3,"surgery,2026-03-05\n"zoe,3\n'),
    "short and long lines": (1, b"zoe\n\nzoe,3\nzoe,3,surgery,2026-03-05,more,and,more\n"),
    "no line break at the end": (1, b"zoe,3,surgery,2026-03-05"),
}


def both(office: Office, pair: tuple[Any, Any], axes: Sequence[Any] = (AGE, WARD)) -> list[dict[str, Any]]:
    """What the world sees of two releases, of two tables, from the same place with the same store."""
    office.opened()
    office.write_spec(axes=[*axes], **PERIODS, source="data/admissions.csv")
    start, witness = office.folder.with_name("start"), office.witness.read_bytes()
    shutil.copytree(office.store, start)
    seen = []
    for records in pair:
        shutil.rmtree(office.store)
        shutil.copytree(start, office.store)
        office.witness.write_bytes(witness)
        if isinstance(records, bytes):
            (office.folder / "data" / "admissions.csv").write_bytes(records)
            office.write_spec(axes=[*axes], **PERIODS, source="data/admissions.csv")
        else:
            office.write_records(records.cast(SCHEMA))
            office.write_spec(axes=[*axes], **PERIODS)
        ran = office.released("--period", "2026-03-01")
        published = office.published(period="2026-03-01")
        files = {path.name: path.read_bytes() for path in published.iterdir()}
        seen.append({"said": (ran.out, ran.err), "ledger": office.entries(), "files": files})
        seen[-1]["shapes"] = {name: shape(pq.ParquetFile(published / name)) for name in files if "parquet" in name}
        public = {str(path.relative_to(office.store)) for path in office.store.rglob("*")}
        seen[-1]["paths"] = public
    return seen


def shape(file: pq.ParquetFile) -> Any:
    """All of a Parquet file but its values and the room they take."""
    schema = [str(file.schema.column(number)) for number in range(len(file.schema))]
    return without_sizes(file.metadata.to_dict()), file.metadata.metadata, schema


def without_sizes(content: Any) -> Any:
    if isinstance(content, dict):
        kept = {name: value for name, value in content.items() if not re.search("size|offset", name)}
        return {name: without_sizes(value) for name, value in kept.items()}
    return [without_sizes(value) for value in content] if isinstance(content, list) else content


def keys(content: Any) -> Any:
    """A JSON value with its leaves left out."""
    if isinstance(content, dict):
        return {name: keys(value) for name, value in content.items()}
    return [keys(value) for value in content] if isinstance(content, list) else type(content).__name__


@pytest.mark.parametrize("name", mostly_soaked(PAIRS, range(0, len(PAIRS), 4)))
def test_neighbours_give_releases_of_one_shape_at_one_price(office: Office, name: str) -> None:
    first, second = both(office, PAIRS[name])
    assert sorted(first["files"]) == FILES
    for same in ("said", "shapes", "paths"):
        assert first[same] == second[same]
    audits = [json.loads(seen["files"]["audit.json"]) for seen in (first, second)]
    assert keys(audits[0]) == keys(audits[1])
    varying = ("ledger", "values_digest", "audit_digest", "files")
    assert len({json.dumps({**audit, **dict.fromkeys(varying)}) for audit in audits}) == 1
    assert [row[1] for row in first["ledger"]] == ["created", "opened", "allowed", "allowed", "charged", "published"]
    prices = [[json.loads(row[6]).get("epsilon") for row in seen["ledger"]] for seen in (first, second)]
    assert prices == [[None, None, None, None, "1/2", None]] * 2


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Answers that do not depend on counts, though counts are read for them; and a clock that stands still.

    Gives the exact totals that were read, in order.
    """
    answer, totals = Journal.answer, list[int]()

    def instead(journal: Journal, step: str, question: Any, draw: Callable[[], Any]) -> Any:
        values = draw()
        totals.append(int(values.sum()))
        return answer(journal, step, question, lambda: np.arange(values.size, dtype=np.int64) * 7 - 3)

    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: np.zeros(size, dtype=np.int64))
    monkeypatch.setattr(Journal, "answer", instead)
    monkeypatch.setattr(opened, "utc_now", lambda: "2026-11-02T06:00:00Z")
    monkeypatch.setattr("secrets.token_hex", lambda size: "00" * size)
    return totals


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_soaked(PAIRS, [list(PAIRS).index(name) for name in OF_EACH_KIND]))
def test_with_equal_answers_neighbours_give_the_same_bytes(office: Office, frozen: list[int], name: str) -> None:
    first, second = both(office, PAIRS[name])
    assert first == second
    assert np.diff(frozen) == KEPT[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_soaked(CSV_UNITS, range(0, len(CSV_UNITS), 3)))
def test_with_equal_answers_neighbours_in_csv_give_the_same_bytes(office: Office, frozen: list[int], name: str) -> None:
    first, second = both(office, (CSV_OTHERS, CSV_OTHERS + CSV_UNITS[name][1]))
    assert first == second
    assert np.diff(frozen) == CSV_UNITS[name][0]
