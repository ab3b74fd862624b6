"""A release to an individual account, from `dphist ledger open` to its card: nothing says what is left."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from office import OPEN_HEALTH, RECORDS, Office

pytestmark = [
    pytest.mark.slow,
    pytest.mark.stand_in("catalogue", "pictures", why="what is said of individual accounts"),
]
OPEN = [*OPEN_HEALTH[:-1], "2", "--renews", "yearly", "--accounting", "individual"]
SOURCE = ("--source", "data/admissions.parquet")


@pytest.fixture
def opened(office: Office) -> Office:
    """An office whose only account is an individual one."""
    office.undecided()
    office.write_records()
    office.write_spec()
    assert office.run("ledger", *OPEN, *SOURCE, "--store", office.store).code == 0
    return office


def test_a_release_is_charged_checked_and_shown_without_what_is_left(opened: Office) -> None:
    store = ("--store", opened.store)
    checked = opened.run("check", opened.folder / "spec.yaml", *store)
    words = " ".join(checked.out.split())
    assert "at most 8 rows of each unit are counted in a calendar year" in words and "without `--left-out`" in words
    assert "quality" not in words and "`max_rows_per_unit` keeps rows out" not in words
    released = opened.run("release", opened.folder / "spec.yaml", *store)
    assert released.code == 0, released.err
    assert " left" not in released.out
    shown = opened.run("ledger", "show", "health", *store)
    assert "left of" not in shown.out and "0.5 for 2 rows" in shown.out
    (facts,) = opened.run("ledger", "show", "health", "--json", *store).json
    assert facts["accounting"] == "individual" and "left" not in facts
    report = opened.run("ledger", "report", "--json", *store)
    assert report.code == 0 and "left" not in report.json["accounts"][0]
    assert opened.run("ledger", "report", *store).code == 0
    another = ("ledger", "open", "another", *OPEN[2:], *SOURCE, "--also-of", "health", *store)
    assert "together at most 4 on the same people" in opened.run(*another).out
    assert opened.run("ledger", "verify", *store).code == 0
    (published,) = (opened.store / "public/wards").glob("period=*/revision=1")
    audit = json.loads((published / "audit.json").read_bytes())
    assert audit["year_rows"] == 8
    assert "At the price of this release at most 8 rows" in " ".join((published / "card.html").read_text().split())


def test_the_same_call_again_replays_and_another_spec_of_the_same_account_pays_too(opened: Office) -> None:
    spec, store = opened.folder / "spec.yaml", ("--store", opened.store)
    assert opened.run("release", spec, *store).code == 0
    assert "Already published" in opened.run("release", spec, *store).out
    opened.write_spec(release="others", epsilon="3/2", max_rows_per_unit=1)
    assert opened.run("release", spec, *store).code == 0
    opened.write_spec(release="third", epsilon="5/2", max_rows_per_unit=1)
    refused = opened.run("release", spec, *store)
    assert refused.code == 1 and "would count nobody" in " ".join(refused.err.split())


def test_a_share_of_the_total_tells_how_many_are_left_out(office: Office) -> None:
    office.undecided()
    office.write_records()
    office.write_spec()
    store, spec = ("--store", office.store), office.folder / "spec.yaml"
    assert office.run("ledger", *OPEN, *SOURCE, "--left-out", "1/20", *store).code == 0
    assert "without `--left-out`" not in " ".join(office.run("check", spec, *store).out.split())
    released = office.run("release", spec, *store)
    assert released.code == 0, released.err
    audit = json.loads((office.published() / "audit.json").read_bytes())
    assert audit["charges"][-1] == {"step": "quality_left_out", "epsilon": "1/10", "noise_scale": "10"}
    assert (audit["epsilon"], audit["year_rows"]) == ("3/5", 7)  # 1.9 for rows of 1/4
    assert "that are left out for the first time in the calendar year" in (office.published() / "card.html").read_text()
    (row,) = pq.read_table(office.published() / "quality.parquet").to_pylist()
    assert (row["statistic"], row["noise_scale"]) == ("left_out", 10)
    says = " ".join(office.run("quality", "wards", *store).out.split())
    assert "that are left out for the first time" in says
    assert office.run("quality", "wards", "--json", *store).json["rows"] == [row]
    shown = office.run("ledger", "show", "health", *store)
    assert "0.1 in each release" in shown.out
    for again in (("release", spec), ("ledger", "verify")):
        ran = office.run(*again, *store)
        assert ran.code == 0, ran.err
    assert "Already published" in office.run("release", spec, *store).out


def test_a_source_that_names_units_by_doubles_instead_of_whole_numbers_is_refused_and_not_charged(
    office: Office,
) -> None:
    names = {kind: pa.array([1, 2, 2, 3], kind) for kind in (pa.int64(), pa.float64(), pa.decimal128(9, 2))}
    office.undecided()
    office.write_records(RECORDS | {"patient": names[pa.int64()]})
    office.write_spec()
    store, spec = ("--store", office.store), office.folder / "spec.yaml"
    assert office.run("ledger", *OPEN, *SOURCE, *store).code == 0
    for kind in (pa.float64(), pa.decimal128(9, 2)):
        office.write_records(RECORDS | {"patient": names[kind]})
        refused = office.run("release", spec, *store)
        assert refused.code == 1 and "patient" in refused.err
        (account,) = office.run("ledger", "show", "health", "--json", *store).json
        assert account["charges"] == []
        another = ["open", "another", *OPEN[2:], *SOURCE, "--also-of", "health", *store]
        assert "must be text, whole numbers or UUIDs" in " ".join(office.run("ledger", *another).err.split())
    office.write_records(RECORDS | {"patient": names[pa.int64()]})
    assert office.run("release", spec, *store).code == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((*OPEN_HEALTH, "--accounting", "individual", *SOURCE), "--renews yearly"),
        (OPEN, "--source"),
        ((*OPEN_HEALTH, "--accounting", "private", *SOURCE), "summed or individual"),
        *(((*OPEN, "--source", source), "files that are there") for source in ("data/none.parquet", "frame:records")),
        *(((*OPEN, *SOURCE, "--left-out", share), "a part of the total") for share in ("0", "1", "-1/20", "21/20")),
        ((*OPEN_HEALTH, *SOURCE, "--left-out", "1/20"), "a part of the total of an individual account"),
    ],
)
def test_what_cannot_be_opened_says_why(office: Office, options: tuple[str, ...], says: str) -> None:
    office.undecided()
    office.write_records()
    refused = office.run("ledger", *options, "--store", office.store)
    assert refused.code != 0 and says in " ".join(refused.err.split())
    assert office.run("ledger", "show", "--json", "--store", office.store).json == []
