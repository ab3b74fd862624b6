"""Code lists: categories in a public file, with levels and labels; every mistake is told by its line."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from declared_lists import below
from spec_scenario import VALID

from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.mistakes import SpecError

COUNTIES = (
    "code,county,state,region\n01001,Autauga,Alabama,South\n02013,Aleutians,Alaska,West\n01003,Baldwin,Alabama,South\n"
)
CODES = "code,title,above\nA00,Cholera,I\nA01,Typhoid,I\nI,Infections,\nC00,Lip,II\nII,Neoplasms,\n"
AXIS = {"column": "county", "values_from": "codes.csv", "values_column": "code", "levels": ["state", "region"]}


def spec(folder, text, axis=AXIS, name="codes.csv"):
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return declared(folder, axis)


def declared(folder, *axes):
    return ReleaseSpec.from_attributes({**VALID, "axes": list(axes)}, folder, code_lists=below(folder))


def refused(folder, text, axis=AXIS):
    with pytest.raises(SpecError) as caught:
        spec(folder, text, axis)
    return "; ".join(what for _, what in caught.value.problems)


def test_codes_keep_their_order_and_know_their_levels_and_labels(tmp_path):
    axis = spec(tmp_path, COUNTIES, {**AXIS, "label_column": "county"}).domain.axes[0]
    assert axis.values == ("01001", "02013", "01003")
    assert axis.levels == {"state": ("Alabama", "Alaska", "Alabama"), "region": ("South", "West", "South")}
    assert axis.labels == ("Autauga", "Aleutians", "Baldwin")


def test_a_list_of_parents_gives_the_codes_that_nobody_names(tmp_path):
    axis = {"column": "icd", "values_from": "codes.csv", "values_column": "code", "parent_column": "above"}
    found = spec(tmp_path, CODES, {**axis, "levels": ["chapter"], "label_column": "title"}).domain.axes[0]
    assert found.values == ("A00", "A01", "C00")
    assert found.levels == {"chapter": ("I", "I", "II")}
    assert found.labels == ("Cholera", "Typhoid", "Lip")


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + COUNTIES,
        COUNTIES.replace("\n", "\r\n"),
        COUNTIES.replace("Alaska", '"Alaska"').replace("02013", " 02013 "),
    ],
    ids=["byte order mark", "windows line ends", "quotes and blanks"],
)
def test_how_a_list_was_saved_does_not_change_the_spec(tmp_path, text):
    assert spec(tmp_path, text).digest == spec(tmp_path, COUNTIES).digest


def test_parquet_and_csv_lists_say_the_same(tmp_path):
    rows = [line.split(",") for line in COUNTIES.split()]
    table = pa.table({name: [row[place] for row in rows[1:]] for place, name in enumerate(rows[0])})
    pq.write_table(table, tmp_path / "codes.parquet")
    from_parquet = declared(tmp_path, {**AXIS, "values_from": "codes.parquet"})
    assert from_parquet.digest == spec(tmp_path, COUNTIES).digest


@pytest.mark.parametrize("change", [("02013", "02016"), ("Alaska", "Hawaii")], ids=["code", "level"])
def test_what_a_list_says_belongs_to_the_digest(tmp_path, change):
    assert spec(tmp_path, COUNTIES.replace(*change)).digest != spec(tmp_path, COUNTIES).digest


def test_an_audit_describes_the_whole_list(tmp_path):
    made = spec(tmp_path, COUNTIES)
    assert domain_of(made.as_json()["axes"]) == made.domain


def test_listed_values_have_the_digest_of_a_list_without_levels(tmp_path):
    plain = spec(tmp_path, COUNTIES, {"column": "county", "values": ["01001", "02013", "01003"]})
    assert spec(tmp_path, COUNTIES, {key: AXIS[key] for key in AXIS if key != "levels"}).digest == plain.digest


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (COUNTIES + "01001,Again,Alabama,South\n", ["line 5: repeats an earlier code; keep one"]),
        (
            COUNTIES + "a,b,Alabama,South\nA,c,Alabama,South\n",
            ["line 6: repeats an earlier code, case and hidden signs ignored"],
        ),
        (COUNTIES + "03001,None,,South\n", ["line 5", "has no state"]),
        (COUNTIES + "03001,Odd,Alaska,South\n", ["line 5: its state lies in another region on an earlier line"]),
        (COUNTIES + "03001,Short\n", ["line 5", "has no state"]),
        (COUNTIES + ",Empty,Alaska,West\n", ["line 5", "is empty"]),
        (COUNTIES + "<b>,Markup,Alaska,West\n", ["line 5", "HTML"]),
        ("code,county\n01001,a\n", ["column 'state' is not there"]),
        ("code,state,state,region\n01001,a,b,c\n", ["column 'state' is there twice"]),
        ("code,state,region\n", ["holds no row"]),
        ("", ["'code' is not there"]),
        (COUNTIES.encode("utf-16"), ["not a readable table"]),
        (COUNTIES.encode() + b"\xff\xfe,a,b,c\n", ["not a readable table"]),
        (COUNTIES + "\0,a,b,c\n", ["not a readable table"]),
    ],
)
def test_a_mistake_in_a_list_is_told_by_its_line(tmp_path, text, says):
    problem = refused(tmp_path, text)
    assert all(part in problem for part in says), problem
    assert not any(word in problem for word in ("01001", "03001", "Alabama", "Alaska", "West", "South", "<b>"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (CODES + "B00,Herpes,III\n", ["line 7: its above is not a code of the list"]),
        (
            CODES.replace("I,Infections,", "I,Infections,A00"),
            ["line 2: is its own ancestor", "line 4: is its own ancestor"],
        ),
        (CODES + "D00,Blood,\n", ["line 7: has more or fewer codes above it than `levels` names"]),
        (CODES + "A001,Deep,A00\n", ["line 7: has more or fewer codes above it"]),
    ],
)
def test_a_code_without_its_place_in_the_tree_is_told_by_its_line(tmp_path, text, says):
    axis = {"column": "icd", "values_from": "codes.csv", "values_column": "code", "parent_column": "above"}
    with pytest.raises(SpecError) as caught:
        spec(tmp_path, text, {**axis, "levels": ["chapter"]})
    assert all(part in str(caught.value) for part in says), caught.value


def test_a_list_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SpecError, match=r"codes\.csv is no file below a folder"):
        declared(tmp_path, AXIS)


def test_levels_may_not_take_the_name_of_another_column(tmp_path):
    axes = [AXIS, {"column": "state", "values": ["Alaska"]}]
    (tmp_path / "codes.csv").write_text(COUNTIES)
    with pytest.raises(SpecError, match="clashes"):
        declared(tmp_path, *axes)


@pytest.mark.slow
def test_fifty_thousand_codes_are_read_in_one_go(tmp_path):
    lines = [f"{number:05d},c{number},s{number // 1000},r" for number in range(50_000)]
    axis = spec(tmp_path, "\n".join(["code,county,state,region", *lines])).domain.axes[0]
    assert axis.size == 50_000
    assert axis.levels["state"][-1] == "s49"


def test_a_message_never_lists_a_long_list_of_codes(tmp_path):
    from dphist_pipeline.estimates.chosen_cells import QuestionRefused, chosen_cells

    lines = [f"{number:05d}" for number in range(5000)]
    made = spec(
        tmp_path, "\n".join(["code", *lines]), {"column": "c", "values_from": "codes.csv", "values_column": "code"}
    )
    with pytest.raises(QuestionRefused) as caught:
        chosen_cells(made.domain, {"c": "nowhere"})
    assert len(str(caught.value)) < 400


def test_a_list_that_is_too_long_or_too_large_is_refused_before_it_is_held(tmp_path, monkeypatch):
    from dphist_pipeline.spec import _code_lists

    monkeypatch.setattr(_code_lists, "MOST_CODES", 2)
    assert "more than 2 codes" in refused(tmp_path, COUNTIES)
    monkeypatch.setattr(_code_lists, "LARGEST_FILE", 10)
    assert "too large" in refused(tmp_path, COUNTIES)


def test_a_first_line_that_is_no_header_is_never_shown(tmp_path):
    assert "Alabama" not in refused(tmp_path, COUNTIES.partition("\n")[2])


def test_a_label_that_is_no_category_is_told_by_its_line(tmp_path):
    problem = refused(tmp_path, COUNTIES.replace("Baldwin", "<b>"), {**AXIS, "label_column": "county"})
    assert problem.startswith("line 4: its label looks like HTML") and "<b>" not in problem


def test_twenty_mistakes_are_told_and_not_how_many_there_are(tmp_path):
    problem = refused(
        tmp_path, "code\n" + "x\n" * 5000, {"column": "c", "values_from": "codes.csv", "values_column": "code"}
    )
    assert problem.count("line ") == 20 and problem.endswith("; and more")
    assert "line 22: repeats" in problem and "4999" not in problem and "5000" not in problem


def test_signs_that_python_takes_for_line_ends_are_part_of_a_label(tmp_path):
    listed = "code,county,state,region\n01,a\u2009b\u0085c,Alabama,South\n02,b,Alaska,West\n"
    assert spec(tmp_path, listed).domain.axes[0].values == ("01", "02")


def test_a_folder_in_place_of_a_list_is_refused(tmp_path):
    (tmp_path / "codes.csv").mkdir()
    with pytest.raises(SpecError, match="is no file below"):
        declared(tmp_path, AXIS)
