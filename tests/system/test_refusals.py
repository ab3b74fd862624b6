"""Refusals of specs, periods and sources: one clear message, nothing spent, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from office import AGE, WARD, Office, Ran
from refusing import check_changes_nothing, check_refused

pytestmark = pytest.mark.draws_alike


def refuses_spec(office: Office, *says: str, **changes: Any) -> None:
    office.opened().write_spec(**changes)
    check_changes_nothing(office, office.release, "nothing was read or spent", *says)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("mechanism", "geometrc", "Did you mean 'geometric'?"),
        ("epsilom", "1", "attributes.epsilom: unknown field. Did you mean 'epsilon'?"),
        ("settings", {"share": "1/2"}, "attributes.settings.share: mechanism 'geometric'"),
        ("release", "select", "'select' is an SQL word"),
        ("release", "Wards", "use lower-case letters"),
        ("release", "estimate", "choose another name"),
        ("release", "../wards", "'../wards' is not a plain name"),
        ("release", 'wards"', "is not a plain name"),
        ("release", "<b>wards</b>", "is not a plain name"),
        ("account", "../health", "is not a plain name"),
        ("source", "data", "must end in .parquet or .csv"),
        ("title", "\x1b[31m", "control character"),
    ],
)
def test_a_field_that_cannot_be_is_refused(office: Office, field: str, value: object, says: str) -> None:
    refuses_spec(office, f"attributes.{field}", says, **{field: value})


@pytest.mark.slow
def test_words_about_the_publisher_are_checked_before_a_charge(office: Office) -> None:
    wrong = {
        '{"licence": "CC0"}': "there is no field 'licence'; the fields are",
        '{"language": "it"}': "there is no language 'it'",
        '{"publisher": 5}': "'publisher' is no text",
        "{": "is no JSON that can be read",
        "[]": "is no JSON object",
    }
    about = office.opened().store / "about.json"
    for content, says in wrong.items():
        about.write_text(content)
        check_changes_nothing(office, office.release, "about.json", says, "Nothing was read or spent")
    about.write_text('{"publisher": "The office"}')
    office.released()
    for content in wrong:
        about.write_text(content)
        assert office.release().code == 0, "a replay gives what was published"


@pytest.mark.parametrize(
    "epsilon", [0, -1, "nan", float("nan"), float("inf"), "inf", 1e-300, "1e-300", "abc", 51, True]
)
def test_an_epsilon_that_is_no_budget_is_refused(office: Office, epsilon: object) -> None:
    refuses_spec(office, "attributes.epsilon: must ", epsilon=epsilon)


def test_more_cells_than_allowed_are_refused(office: Office) -> None:
    refuses_spec(office, "attributes.axes: make 7 x 3 cells, more than the 20 of `max_cells`", max_cells=20)


def ward(*values: str) -> dict[str, Any]:
    return {"column": "ward", "values": list(values)}


@pytest.mark.parametrize(
    ("axes", "says"),
    [
        ([{"column": "age", "edges": [0, 50, 25]}], "bins may not overlap; sort the edges"),
        ([{"column": "age", "edges": [0, 25, 25]}], "bins may not overlap"),
        ([ward("icu", "icu")], "repeats values[0]; keep one"),
        ([ward("icu", "ICU")], "repeats values[0], case and hidden signs ignored; keep one"),
        ([ward("../../etc/passwd")], "looks like a path"),
        ([ward('say "no"')], "clean the source or use `other`"),
        ([ward("x' OR '1'='1")], "an apostrophe that is not between letters"),
        ([ward("<script>alert(1)</script>")], "looks like HTML"),
        ([{**WARD, "name": "select"}], "'select' is an SQL word"),
        ([{**AGE, "column": "order"}], "add `name: "),
        ([{**WARD, "name": "estimate"}], "is a column that every release has"),
        ([{**WARD, "name": "Ward"}], "use lower-case letters"),
        ([WARD, {**WARD, "column": "WARD", "name": "ward"}], "clashes with the one of axes[0]; give it another"),
        ([AGE, {**WARD, "name": "age_lower"}], "clashes with the one of axes[0]"),
        ([{**WARD, "name": "../ward"}], "is not a plain name"),
        ([{**WARD, "name": 'w"ard'}], "is not a plain name"),
        ([{**WARD, "column": "<b>ward</b>"}], "cannot be a published name; add `name: "),
    ],
)
def test_axes_that_cannot_be_are_refused(office: Office, axes: list[object], says: str) -> None:
    refuses_spec(office, "attributes.axes[", says, axes=axes)


@pytest.mark.parametrize("written", ["NO", "on", "12:30", "010", "~"])
def test_a_category_that_yaml_does_not_read_as_text_is_to_be_quoted(office: Office, written: str) -> None:
    office.opened().write_spec(axes=[ward("surgery", "WRITTEN")])
    spec = office.folder / "spec.yaml"
    spec.write_text(spec.read_text().replace('"WRITTEN"', written))
    check_changes_nothing(
        office, office.release, "attributes.axes[0].values[1]: must be text, but arrived as ", "quote it"
    )


@pytest.mark.parametrize(
    "period", ["../../etc", "/etc/passwd", "2026-03-02/..", "wards", "", "all/../x", "2026-02-30", "2999-01-01"]
)
def test_a_period_that_is_none_is_refused(office: Office, period: str) -> None:
    office.opened().write_spec(period="month", period_column="day", period_format="iso")
    check_changes_nothing(office, lambda: office.release("--period", period), f"period {period!r}: ")
    office.write_spec()
    check_changes_nothing(office, lambda: office.release("--period", period), "its only period is 'all'")


@pytest.mark.slow
def test_files_that_are_missing_or_cut_off_are_refused(office: Office) -> None:
    office.opened()
    source = office.folder / "data" / "admissions.parquet"
    source.write_bytes(source.read_bytes()[:-20])
    check_changes_nothing(office, office.release, str(source), "is cut off. Write it anew.")
    source.write_bytes(b"")
    check_changes_nothing(office, office.release, str(source), "is not a readable Parquet file")
    source.unlink()
    check_changes_nothing(office, office.release, str(source), "no such file. Check `source`")
    source.mkdir()
    check_changes_nothing(office, office.release, str(source), "is not a file; name files")
    (office.folder / "spec.yaml").unlink()
    check_changes_nothing(office, office.release, "spec.yaml", "there is no such file; check the path")


def test_a_parquet_file_that_is_damaged_in_the_middle_is_refused_and_spends_nothing(office: Office) -> None:
    office.opened().write_records({"patient": [f"{n:099}" for n in range(4)], "age": [1.0] * 4, "ward": ["icu"] * 4})
    source = office.folder / "data" / "admissions.parquet"
    content = source.read_bytes()
    source.write_bytes(content[:20] + bytes(200) + content[220:])
    check_changes_nothing(office, office.release, "data/admissions.parquet", "damaged file")


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("age", None, "column 'age' is not in the source"),
        ("patient", None, "column 'patient' is not in the source"),
        ("age", pa.array([[1.0]]), "column 'age' has type"),
        ("age", pa.array([True]), "which cannot serve as a binned axis"),
        ("ward", pa.array([{"a": 1}]), "which cannot serve as a categorical axis"),
        ("patient", pa.array([b"ann"]), "which cannot serve as a privacy unit"),
    ],
)
def test_columns_that_are_missing_or_of_a_wrong_type_are_refused(
    office: Office, column: str, values: object, says: str
) -> None:
    records = {"patient": ["ann"], "age": [3.0], "ward": ["surgery"], column: values}
    office.opened().write_records({name: content for name, content in records.items() if content is not None})
    check_changes_nothing(office, office.release, says)


@pytest.mark.slow
def test_categories_that_look_like_sql_or_mathematics_are_data(office: Office) -> None:
    values = ["select", "drop table wards", "O'Brien", "<=50K", "100 %_", "a;--", "$files", "{columns}", "NULL"]
    office.opened().write_spec(axes=[{**ward(*values), "other": True}], epsilon=5)
    office.write_records({"patient": list(range(900)), "age": [1.0] * 900, "ward": values * 100})
    office.released()
    table = pq.read_table(office.published() / "histogram.parquet")
    assert table["ward"].to_pylist() == [*values, None]
    assert all(70 < estimate < 130 for estimate in table["estimate"].to_pylist()[:-1])


@pytest.mark.parametrize("address", ["s3://bucket/store", "gs://bucket", "file:///tmp/store"])
def test_an_address_is_no_folder_for_a_store(office: Office, address: str) -> None:
    for words in (["init", "--store", address], ["ledger", "show", "--store", address]):
        refused = office.run(*words)
        assert refused.code == 1 and "begins an address" in " ".join(refused.err.split())
    assert not any("bucket" in path.name or ":" in path.name for path in office.folder.rglob("*"))


@pytest.mark.slow
def test_the_installed_command_refuses_and_releases_as_the_one_in_this_process_does(office: Office) -> None:
    command = Path(sys.executable).with_name("dphist")
    office.opened().write_spec(epsilon=0)
    for epsilon, code in ((0, 1), (1, 0)):
        office.write_spec(epsilon=epsilon)
        done = subprocess.run([command, "release", "spec.yaml"], cwd=office.folder, capture_output=True, env=os.environ)
        assert done.returncode == code
        if code:
            check_refused(Ran(code, done.stdout.decode(), done.stderr.decode()), "attributes.epsilon")
    assert len(office.entries()) == 5


@pytest.mark.slow
def test_two_releases_that_share_the_name_of_a_view_are_refused_unspent(office: Office) -> None:
    office.opened().released()
    office.write_spec(release="wards_all")
    before = office.entries()
    for command in ("check", "release"):
        refused = office.run(command, "spec.yaml")
        told = " ".join(refused.err.split())
        assert refused.code == 1 and "wards_all is the view of every revision of wards" in told
        assert "This call published and spent nothing; rename 'wards_all'" in told
    assert office.entries() == before
    office.write_spec(release="beds_all")
    told = " ".join(office.run("check", "spec.yaml", "--store", office.store).out.split())
    assert "no release can have the name 'beds' in this store" in told
    office.released()
    office.write_spec(release="beds")
    assert "rename 'beds'" in " ".join(office.run("check", "spec.yaml").err.split())
    assert office.run("release", "spec.yaml").code == 1
    office.write_spec()
    assert office.released().code == 0
