"""`dphist new`: a spec from column names and types, refused until a person has decided what is theirs to decide."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from office import Office
from refusing import check_changes_nothing

from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.spec_check import declared_code_lists
from dphist_pipeline.spec._yaml_rules import read_yaml
from dphist_pipeline.workbench.planning.columns import read_layout

DOCS = Path(__file__).parents[2] / "docs"
# What stands beside a field, by the page that it names.
ADVICE = {
    "The privacy promise": "not a visit",
    "See what the bound cuts": "With few rows leave it out",
    "How to choose ε": "all add up",
    "Local days": "Europe/Brussels",
    "Threat model": "`all` if every field is in quotes",
    "Columns made of other people's rows": "epsilon does not cover",
    "Dates in text": "not that of its entry",
    "Approval: `publish: manual`": "wait for a person",
}
HEADER = "patient,age,ward,admitted on\n"
DECIDED = [
    *(("privacy_unit: \\[\\]", "privacy_unit: patient_id"), ("max_rows_per_unit: TO_DECIDE", "max_rows_per_unit: 3")),
    *(("neighbours: TO_DECIDE", "neighbours: add_remove"), ("epsilon: TO_DECIDE", "epsilon: 1")),
    *(("account: TO_DECIDE", "account: health"), ("start: TO_DECIDE", "start: 0"), ("stop: TO_DECIDE", "stop: 100")),
    *(
        ("width: TO_DECIDE", "width: 5"),
        ("values: TO_DECIDE", "values: [surgery]"),
        ("period: TO_DECIDE", "period: week"),
    ),
]


def write_parquet(name: str = "people.parquet", **columns: pa.DataType) -> None:
    names = columns or {
        **{"patient_id": pa.int64(), "age": pa.int32(), "ward": pa.dictionary(pa.int8(), pa.string())},
        **{
            "urgent": pa.bool_(),
            "admitted": pa.date32(),
            "left": pa.timestamp("us", "UTC"),
            "cost": pa.decimal128(9, 2),
        },
    }
    pq.write_table(pa.table({column: pa.array([], kind) for column, kind in names.items()}), name)


def attributes(file: str) -> dict[str, Any]:
    content = read_yaml(Path(file).read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    found: dict[str, Any] = content["attributes"]
    return found


@pytest.mark.parametrize(
    ("column", "by"),
    [("readmitted", ["readmitted"]), ("Died in hospital", ["died_in_hospital"]), ("ward", []), ("statusquo", [])],
)
def test_a_draft_asks_for_the_outcome_and_puts_a_likely_one_into_the_quality_table(
    office: Office, column: str, by: list[str]
) -> None:
    """What makes people come again is what a bound on their rows moves."""
    write_parquet(patient_id=pa.int64(), age=pa.int32(), **{column: pa.string()})
    assert office.run("new", "weekly", "--from", "people.parquet").code == 0
    text = Path("weekly.yaml").read_text(encoding="utf-8")
    assert "an outcome (readmitted" in text and attributes("weekly.yaml")["quality"]["by"] == by
    assert not by or by[0] in [axis.get("name", axis["column"]) for axis in attributes("weekly.yaml")["axes"]]


def test_types_become_axes_and_periods(office: Office) -> None:
    write_parquet()
    ran = office.run("new", "weekly", "--from", "people.parquet")
    assert (ran.code, ran.err) == (0, "") and "dphist check weekly.yaml" in ran.out
    told = attributes("weekly.yaml")
    assert [axis["column"] for axis in told["axes"]] == ["age", "ward", "urgent", "cost"]
    numbers, texts, flags, _ = told["axes"]
    assert {"start", "stop", "width"} <= set(numbers) and numbers["whole"] is True and texts["values"] == "TO_DECIDE"
    assert flags["values"] == ["false", "true"]
    assert (told["period"], told["period_column"]) == ("TO_DECIDE", "admitted")
    assert told["mechanism"] == "adaptive"
    text = Path("weekly.yaml").read_text()
    assert "perhaps patient_id" in text and "also left" in text and "calendar: month" in text


def test_a_number_of_days_is_no_period_and_a_code_is_offered_as_an_axis(office: Office) -> None:
    names = "admission_type_id,patient_nbr,time_in_hospital,day_of_week,time_of_admission\n"
    Path("stays.csv").write_text(names)
    office.run("new", "stays", "--from", "stays.csv")
    told, text = attributes("stays.yaml"), Path("stays.yaml").read_text()
    assert told["period_column"] == "time_of_admission" and "perhaps patient_nbr, admission_type_id" in text
    assert [axis["column"] for axis in told["axes"]] == ["time_in_hospital", "day_of_week"]
    assert "# - {column: admission_type_id, values: TO_DECIDE" in text and "# - {column: patient_nbr" not in text


@pytest.mark.parametrize("column", ["id", "patientId", "PersonID", "userid", "MRN", "National ID", "record_no", "uuid"])
def test_a_column_that_names_units_is_drafted_as_no_axis_and_the_draft_says_why(office: Office, column: str) -> None:
    Path("stays.csv").write_text(f"age,{column},ward\n")
    assert office.run("new", "stays", "--from", "stays.csv").code == 0
    told, text = attributes("stays.yaml"), Path("stays.yaml").read_text()
    assert [axis["column"] for axis in told["axes"]] == ["age", "ward"] and "- {column: " + column not in text
    (why,) = [line for line in text.splitlines() if "publish who is in the records" in line]
    assert column in why and "perhaps" in text


@pytest.mark.parametrize("column", ["household_size", "patient age", "client_type", "sex_of_person", "PatientStatus"])
def test_what_is_said_of_a_unit_is_drafted_as_an_axis(office: Office, column: str) -> None:
    Path("stays.csv").write_text(f"patient_id,{column}\n")
    office.run("new", "stays", "--from", "stays.csv")
    assert [axis["column"] for axis in attributes("stays.yaml")["axes"]] == [column]


def test_check_refuses_the_draft_until_a_person_has_decided_and_names_every_place(office: Office) -> None:
    write_parquet()
    places = office.run("new", "weekly", "--from", "people.parquet", "--json").json["to_decide"]
    refused = office.run("check", "weekly.yaml").err
    assert len(places) == 13 and all(f"attributes.{place}: " in refused for place in places)
    text = Path("weekly.yaml").read_text()
    for written, decided in DECIDED:
        assert office.run("check", "weekly.yaml").code == 1
        text = re.sub(written, decided, text)
        Path("weekly.yaml").write_text(text)
    assert office.run("check", "weekly.yaml").code == 0
    assert str(ReleaseSpec.load("weekly.yaml").source) == "people.parquet"


def test_a_draft_says_what_check_says(office: Office) -> None:
    Path("loans.csv").write_text("card,kind,lent_on\n")
    said = office.run("new", "loans.csv").out
    refused = office.run("check", "loans.yaml").err.splitlines()
    problems = [line.strip().removeprefix("attributes.") for line in refused if line.startswith("  attributes.")]
    assert len(problems) == 8 and all(f"\n  {problem}\n" in said for problem in problems)
    assert "\n8 decisions are left to you" in said


def test_advice_stands_beside_its_field_and_names_a_page_of_the_documentation(office: Office) -> None:
    Path("loans.csv").write_text("card,household_size,lent_on\n")
    assert office.run("new", "loans.csv").code == 0
    text = Path("loans.yaml").read_text(encoding="utf-8")
    titles = re.findall(r"docs, \*(.+?)\*", text)
    pages = [line for page in DOCS.rglob("*.md") for line in page.read_text(encoding="utf-8").splitlines()]
    for title in titles:
        assert any(line.startswith("#") and line.lstrip("#").strip().startswith(title) for line in pages), title
    for title, word in ADVICE.items():
        assert re.search(f"{re.escape(word)}[^*]*docs, \\*{re.escape(title)}\\*", text.replace("\n  # ", " ")), title
    assert "\n  # perhaps household_size\n" in text


def test_a_code_list_is_the_categories_of_its_column(office: Office) -> None:
    write_parquet()
    Path("codes").mkdir()
    Path("codes/wards.csv").write_text("code,label\nS,surgery\nM,medicine\n")
    Path("codes/costs.csv").write_text("cost\n1.00\n")
    lists = ["--code-list", "codes/wards.csv", "--column", "ward", "--code-list", "codes/costs.csv", "--column", "cost"]
    assert office.run("new", "weekly", "--from", "people.parquet", *lists).code == 0
    ward, cost = attributes("weekly.yaml")["axes"][:2]
    open_one = {"column": "ward", "values_from": "codes/wards.csv", "values_column": "TO_DECIDE", "other": True}
    assert ward == open_one and cost == {"column": "cost", "values_from": "codes/costs.csv", "other": True}
    text = Path("weekly.yaml").read_text()
    assert "# TO_DECIDE: one of code, label\n" in text
    text = text.replace("values_column: TO_DECIDE", "values_column: code, label_column: label")
    for written, decided in DECIDED:
        text = re.sub(written, decided, text)
    Path("weekly.yaml").write_text(text)
    assert "dphist init --code-lists FOLDER" in office.run("check", "weekly.yaml").err
    assert office.run("init", "--code-lists", "codes").code == 0
    assert office.run("check", "weekly.yaml").code == 0
    axes = ReleaseSpec.load("weekly.yaml", declared_code_lists(None)).domain.axes
    assert [(axis.name, axis.size) for axis in axes] == [("ward", 3), ("cost", 2), ("age", 23), ("urgent", 3)]


def test_a_code_list_without_a_source_gives_the_axis_alone(office: Office) -> None:
    Path("wards.csv").write_text("ward\nsurgery\n")
    ran = office.run("new", "bare", "--code-list", "wards.csv", "--column", "ward")
    assert "dphist init --code-lists . makes one, before the first" in ran.out
    assert attributes("bare.yaml")["axes"] == [{"column": "ward", "values_from": "wards.csv", "other": True}]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--code-list", "codes.csv"], "give each --code-list the --column"),
        (["--column", "age"], "give each --code-list the --column"),
        (["--code-list", "codes.csv", "--column", "wrad"], "is no column that can be an axis. Did you mean 'ward'?"),
        (["--code-list", "none.csv", "--column", "ward"], "there is no such file"),
        (["--code-list", "semicolons.csv", "--column", "ward"], "parted by commas"),
        (["--code-list", "{{ x }}.csv", "--column", "ward"], "holds a template sign"),
        (
            ["--code-list", "codes.csv", "--column", "age", "--code-list", "codes.csv", "--column", "age"],
            "no column twice",
        ),
    ],
)
def test_a_code_list_that_fits_nothing_is_refused(office: Office, words: list[str], says: str) -> None:
    Path("people.csv").write_text("patient,age,ward\n")
    Path("codes.csv").write_text("code\n1\n")
    Path("semicolons.csv").write_text("code;label\n1;one\n")
    Path("{{ x }}.csv").write_text("code\n1\n")
    check_changes_nothing(office, lambda: office.run("new", "people.csv", *words), says)


def test_without_a_file_all_is_left_to_a_person(office: Office) -> None:
    places = office.run("new", "bare", "--json").json["to_decide"]
    assert {"source", "privacy_unit", "neighbours", "epsilon", "account", "axes"} <= set(places)


def test_a_csv_file_gives_its_header_line_and_its_delimiter(office: Office) -> None:
    Path("people.csv").write_text(
        '"patient";"age";"Ward, old";"admitted on"\n7;1;secret;2026-01-01\n', encoding="utf-8"
    )
    assert office.run("new", "wards", "--from", "people.csv").code == 0
    told = attributes("wards.yaml")
    assert (told["csv_delimiter"], told["csv_quote"], told["period_column"]) == (";", "rfc", "admitted on")
    assert told["axes"][1] == {"column": "Ward, old", "name": "ward_old", "values": "TO_DECIDE", "other": True}
    assert "secret" not in Path("wards.yaml").read_text()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("7,34,surgery", "it seems to be a record, and none of it is shown"),
        ("ann,2026-01-05", "it seems to be a record, and none of it is shown"),
        ("ann,12:30:01", "it seems to be a record, and none of it is shown"),
        ("a,,b", "its first line has no name for column 2 of 3"),
        ("a,A", "its first line gives columns 1 and 2 the same name"),
        ("", "its first line is empty"),
        ("a\0b", "its first line is empty, or no text"),
    ],
)
def test_a_file_without_a_header_line_is_refused_and_none_of_it_repeated(office: Office, line: str, says: str) -> None:
    Path("people.csv").write_text(f"{line}\nann,1\n")
    asked = ["new", "wards", "--from", "people.csv"]
    check_changes_nothing(office, lambda: office.run(*asked), says)
    assert not any(word in office.run(*asked).err for word in ("surgery", "ann", "2026"))


@pytest.mark.parametrize(
    ("header", "encoding"),
    [
        ("card;Größe\n".encode("cp1252"), "windows-1252"),
        ("card;Größe\n".encode(), None),
        ("\ufeffcard;size\n".encode(), None),
        (b"card;size\n", "utf-8"),
    ],
)
def test_the_header_line_s_bytes_give_the_encoding(office: Office, header: bytes, encoding: str | None) -> None:
    Path("loans.csv").write_bytes(header + b"1;secr\xe9t\n")
    assert office.run("new", "loans", "--from", "loans.csv").code == 0
    told = attributes("loans.yaml")
    assert (told.get("csv_encoding"), told["csv_delimiter"]) == (encoding, ";")
    assert told["axes"][0]["column"] in ("card", "Größe", "size")
    assert [axis["column"] for axis in told["axes"]][-1] in ("Größe", "size")


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_archives_give_their_header_line_too(office: Office, ending: str) -> None:
    name = f"people.csv{ending}"
    with pa.output_stream(name, compression="gzip" if ending == ".gz" else "zstd") as file:
        file.write(HEADER.encode() + b"1,2,3,4\n" * 1000)
    assert [column.name for column in read_layout(name).columns] == ["patient", "age", "ward", "admitted on"]
    Path(name).write_bytes(b"no archive")
    check_changes_nothing(office, lambda: office.run("new", "w", "--from", name), "cannot be read")


HOSTILE = [
    *("a\nrelease: other", "{{ env.HOME }}", 'x: "y" # z', "- {column: b}", "'", '"', "\\", "null", "yes", "1", "~"),
    *(
        "\u202egnp.exe",
        "\ufeffid",
        "\U0001f600",
        "é",
        "a" * 300,
        "select",
        "estimate",
        "a,b",
        "*",
        "&a",
        "!!python",
        "%",
    ),
    *("\x7f", "\x85", "\ufffe", " blank ", "age_lower", "# c", "@", "`", "?", ": ", "a]"),
]


@pytest.mark.slow
def test_hostile_column_names_change_nothing_but_their_own_place(office: Office) -> None:
    for name in HOSTILE:
        write_parquet(**{name: pa.string(), "fine": pa.string()})
        ran = office.run("new", "wards", "--from", "people.parquet", "--json")
        assert (ran.code, ran.err) == (0, ""), name
        told = attributes("wards.yaml")
        assert told["release"] == "wards" and {"column": "fine"}.items() <= told["axes"][-1].items()
        assert [axis["column"] for axis in told["axes"]] in ([name, "fine"], ["fine"])
        # Each name that a spec can hold is read back as it is, and only those that it cannot are left out.
        text = Path("wards.yaml").read_text(encoding="utf-8")
        assert ("# Left out:" in text) == (len(told["axes"]) == 1)
        assert all(letter.isprintable() for line in text.splitlines() for letter in line)
        Path("wards.yaml").unlink()


def test_hundreds_of_columns_make_a_draft_that_a_person_can_read(office: Office) -> None:
    write_parquet(**{f"column_{number}": pa.int64() for number in range(400)})
    assert office.run("new", "wide", "--from", "people.parquet").code == 0
    assert len(attributes("wide.yaml")["axes"]) == 4
    assert "columns after the first 200" in Path("wide.yaml").read_text()


def test_types_that_no_axis_takes_are_left_out_with_the_reason(office: Office) -> None:
    kinds = {"a": pa.list_(pa.int64()), "b": pa.binary(), "c": pa.timestamp("ms"), "d": pa.duration("s")}
    write_parquet(**kinds, e=pa.uint8())
    assert office.run("new", "odd", "--from", "people.parquet").code == 0
    assert [axis["column"] for axis in attributes("odd.yaml")["axes"]] == ["e"]
    text = Path("odd.yaml").read_text()
    assert text.count("serves no axis and no period") == 4 and "write micro- or nanoseconds" in text


def test_no_file_is_ever_overwritten(office: Office) -> None:
    Path("wards.yaml").write_text("precious")
    check_changes_nothing(office, lambda: office.run("new", "wards"), "is there already, and is left as it is")
    Path("linked.yaml").symlink_to("nowhere.yaml")
    check_changes_nothing(office, lambda: office.run("new", "wards", "--output", "linked.yaml"), "is there already")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["Wards"], "is not a plain name"),
        (["select"], "is an SQL word"),
        (["../wards"], "is not a plain name"),
        (["catalog"], "every store uses itself"),
        (["wards", "--from", "nothing.csv"], "there is no such file"),
        (["wards", "--from", "data"], "is not a regular file"),
        (["wards", "--from", "notes.txt"], "must end in .parquet"),
        (["wards", "--from", "office.DUCKDB"], "for others leave out --from"),
        (["wards", "--from", "broken.parquet"], "is not a readable Parquet file"),
        (["wards", "--from", "a\0b.csv"], "there is no such file"),
        (["wards", "--from", "{{ x }}.csv"], "holds a template sign"),
        (["wards", "--output", "no/such.yaml"], "its folder does not exist"),
        (["wards", "--output", "data"], "is there already"),
    ],
)
def test_what_cannot_be_drafted_is_refused_in_one_message(office: Office, words: list[str], says: str) -> None:
    Path("notes.txt").touch()
    Path("office.DUCKDB").touch()
    Path("broken.parquet").write_bytes(b"PAR1 no PAR1")
    Path("{{ x }}.csv").write_text(HEADER)
    check_changes_nothing(office, lambda: office.run("new", *words), says)


def test_odd_file_names_are_named_so_that_a_release_finds_them(office: Office) -> None:
    for name in ("data/it's: #1.csv", "data/é.csv", "data/- ok.csv"):
        Path(name).write_text(HEADER)
        assert office.run("new", "wards", "--from", name).code == 0
        assert attributes("wards.yaml")["source"] == name
        Path("wards.yaml").unlink()
    Path("data/a[1].csv").write_text(HEADER)
    check_changes_nothing(office, lambda: office.run("new", "w", "--from", "data/a[1].csv"), "rename the file")
    Path("data/a[1].csv").unlink()
    assert office.run("new", "wards", "--from", str(office.folder / "data" / "*.csv")).code == 0
    assert attributes("wards.yaml")["source"] == "data/*.csv"


def test_a_source_is_named_from_where_the_spec_will_lie(office: Office) -> None:
    write_parquet("data/people.parquet")
    Path("specs").mkdir()
    assert office.run("new", "wards", "--from", "data/people.parquet", "--output", "specs/wards.yaml").code == 0
    assert attributes("specs/wards.yaml")["source"] == "data/people.parquet"
    elsewhere = office.folder.parent / "elsewhere"
    elsewhere.mkdir()
    assert office.run("new", "wards", "--from", "data/people.parquet", "--output", elsewhere / "w.yaml").code == 0
    assert attributes(str(elsewhere / "w.yaml"))["source"] == str(office.folder / "data" / "people.parquet")


def test_of_a_csv_file_only_the_header_line_is_read(tmp_path: Path) -> None:
    counters = Path("/proc/self/io")
    if not counters.exists():
        pytest.skip("the system does not count what is read")
    file = tmp_path / "people.csv"
    file.write_text(HEADER + "1,2,3,2026-01-01\n" * 100_000)
    read_layout(str(file))

    def read_so_far() -> int:
        found = re.search(r"rchar: (\d+)", counters.read_text())
        assert found is not None
        return int(found[1])

    before = read_so_far()
    read_layout(str(file))
    # Reading the counters is counted, too.
    assert read_so_far() - before < 10_000


@pytest.mark.parametrize(
    ("header", "delimiter", "quote"),
    [
        ("card,age\n", ",", "rfc"),
        ("\ufeffcard;age\r\n", ";", "rfc"),
        ('"card, old, new";"age, or none"\n', ";", "rfc"),
        ("card\tage\n", "\t", "rfc"),
        ('"a;b"\n', ";", "rfc"),
        ('height in 5";age\n', ";", "none"),
    ],
)
def test_a_header_line_that_a_spreadsheet_wrote_gives_delimiter_and_quote(
    office: Office, header: str, delimiter: str, quote: str
) -> None:
    Path("loans.csv").write_bytes(header.encode())
    office.run("new", "loans", "--from", "loans.csv")
    told = attributes("loans.yaml")
    assert (told["csv_delimiter"], told["csv_quote"]) == (delimiter, quote)
    assert ("decimal_comma" in told) == (delimiter == ";")


@pytest.mark.parametrize(
    ("file", "release"),
    [("loans.csv", "loans"), ("data/Loans 2026.CSV", "loans"), ("data/2026.csv", "data"), ("data/*.csv", "data")],
)
def test_a_file_in_place_of_a_release_names_both(office: Office, file: str, release: str) -> None:
    for name in ("loans.csv", "data/Loans 2026.CSV", "data/2026.csv"):
        Path(name).write_text(HEADER)
    assert office.run("new", file, "--json").json["spec"] == f"{release}.yaml"
    told = attributes(f"{release}.yaml")
    assert (told["release"], told["source"]) == (release, file)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["2026.csv"], "gives the table no name; name it: dphist new RELEASE --from 2026.csv"),
        (["select.csv"], "gives the table no name"),
        (["a b/1 2.csv"], None),
        (["loans.xlsx"], "To draft from a file: dphist new RELEASE --from FILE"),
        (["nothing.csv"], "there is no such file"),
        (["loans.csv", "--from", "loans.csv"], "To draft from a file: dphist new RELEASE --from FILE"),
    ],
)
def test_what_names_no_release_is_told_the_command(office: Office, words: list[str], says: str | None) -> None:
    Path("2026.csv").write_text(HEADER)
    check_changes_nothing(office, lambda: office.run("new", *words), says or "there is no such file")


DECISIONS = {
    **{"neighbours": "add_remove", "max_rows_per_unit": "3", "epsilon": "1", "account": "health"},
    **{"period": "week", "period_format": '"%d.%m.%Y"', "format": "iso", "decimal_comma": "true"},
    **{"values": "[a, b]", "start": "0", "stop": "100", "width": "5", "name": "axis_{}"},
}


@pytest.mark.parametrize("header", ['"card","date","select","count"', "id\tvalue", "Kundennummer;Datum;Alter;Größe"])
def test_check_accepts_what_comes_out_of_new_once_every_mark_is_replaced(office: Office, header: str) -> None:
    """A mark is replaced where it stands; nothing is added or removed."""
    Path("loans.csv").write_text(f"{header}\n", encoding="utf-8-sig")
    assert office.run("new", "loans.csv").code == 0
    text, number = Path("loans.yaml").read_text(encoding="utf-8"), 0
    months = 'calendar: month, start: "2026-01-01", stop: "2027-01-01"'
    text = text.replace("calendar: month, start: TO_DECIDE, stop: TO_DECIDE", months)
    while mark := re.search(r"(\w+): TO_DECIDE", text):
        number += 1
        text = text.replace(mark[0], f"{mark[1]}: {DECISIONS[mark[1]].format(number)}", 1)
    first = re.split("[,;\t]", header)[0].strip('"')
    text = text.replace("privacy_unit: []", f'privacy_unit: "{first}"').replace(
        "axes: []", "axes: [{column: x, values: [a]}]"
    )
    Path("loans.yaml").write_text(text, encoding="utf-8")
    checked = office.run("check", "loans.yaml")
    assert (checked.code, checked.err) == (0, "") and "✓ loans.yaml is a valid spec" in checked.out
    assert "! " not in checked.out


@pytest.mark.slow
def test_a_draft_ends_with_the_next_commands_which_work_in_this_order(office: Office) -> None:
    Path("loans.csv").write_text("card,kind\nann,a\n")
    said = office.run("new", "loans.csv").out
    commands = [line.strip() for line in said.splitlines() if line.startswith("  dphist ")]
    opened = "dphist ledger open --for loans.yaml --total EPSILON"
    assert commands == ["dphist check loans.yaml", opened, "dphist release loans.yaml"]
    assert "There is no store yet: dphist init" in said and office.run("init").code == 0
    Path("loans.yaml").unlink()
    assert "dphist init" not in office.run("new", "loans.csv").out
    decided = {"source": "loans.csv", "privacy_unit": "card", "axes": [{"column": "kind", "values": ["a"]}]}
    office.write_attributes_alone(**decided)
    Path("spec.yaml").rename("loans.yaml")
    checked, opening, released = (
        command.replace("EPSILON", "12").removeprefix("dphist ").split() for command in commands
    )
    assert office.run(*checked).code == 0
    digest = office.run(*opening, "--json").json["digest"]
    assert office.run(*opening, "--yes", digest).code == 0 and office.run(*released).code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "encoding", "doubt"),
    [
        ("", "utf-8", "The interval of the total holds 0"),
        ("{},30,Bücher\n", "utf-8", ""),
        ("{},30.5,Bücher\n", "utf-8", ""),
        ("{};30,5;Bücher\n", "utf-8", "Nearly all rows are `other` along age"),
        ("{},30,Bücher\n", "windows-1252", "Nearly all rows are `other` along kind"),
    ],
    ids=["header alone", "as declared", "with a decimal point", "decimal commas", "another encoding"],
)
def test_a_decided_draft_holds_back_files_that_are_not_as_declared(
    office: Office, rows: str, encoding: str, doubt: str
) -> None:
    lines = [rows.format(number) for number in range(500)]
    Path("loans.csv").write_text(
        ("card;age;kind\n" if ";" in rows else "card,age,kind\n") + "".join(lines), encoding=encoding
    )
    assert office.run("new", "loans.csv").code == 0
    text = Path("loans.yaml").read_text(encoding="utf-8")
    for place, decided in {
        "privacy_unit: \\[\\]": "privacy_unit: card",
        "max_rows_per_unit: TO_DECIDE": "max_rows_per_unit: 1",
        "neighbours: TO_DECIDE": "neighbours: add_remove",
        "epsilon: TO_DECIDE": "epsilon: 1",
        "account: TO_DECIDE": "account: library",
        "decimal_comma: TO_DECIDE": "decimal_comma: false",
        "age, values: TO_DECIDE": "age, start: 0, stop: 100, width: 10, below: true, above: true",
        "kind, values: TO_DECIDE": "kind, values: [Bücher, Hörbücher]",
    }.items():
        text = re.sub(place, decided, text)
    Path("loans.yaml").write_text(text, encoding="utf-8")
    opening = ("ledger", "open", "--for", "loans.yaml", "--total", "9")
    assert office.run("init").code == 0
    assert office.run(*opening, "--yes", office.run(*opening, "--json").json["digest"]).code == 0
    made = office.run("release", "loans.yaml", "--json").json
    assert made.get("awaits_approval", False) is bool(doubt) and doubt in made.get("why", "")
