"""The questions of `dphist new` at a terminal: each answer is checked at once, and `check` accepts what they make."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from office import Office, Ran
from planning.test_drafts import HOSTILE, attributes, write_parquet
from pseudo_terminal import shown_on

from dphist_pipeline.cli import app as cli
from dphist_pipeline.cli.prepare.new import _with_advice
from dphist_pipeline.errors import Refused
from dphist_pipeline.planning._public_lists import LISTS, list_for
from dphist_pipeline.planning.columns import read_layout
from dphist_pipeline.planning.expected_quality import rows_for_quality, small_share
from dphist_pipeline.planning.interview import Decided, Question, interview
from dphist_pipeline.planning.unit_names import doubt_of_other_rows, names_event, names_person, unit_doubt
from dphist_pipeline.releasing.release_spec import ReleaseSpec

LOANS = "card,Datum,age,kind\nann,2026-09-14,30,Novel\n"
# Unit, period, length, format, columns, age, kind, outcome, serves, cap, account, epsilon; empty takes the default.
COMMAND = "from dphist_pipeline.cli.app import main; main()"
ANSWERS = ["1", "2", "week", "iso", "3, 4", "ages", "Novel, Film", "none", "cells", "3", "library", "0.5"]
LAST = {
    "About how many rows": "1000000",
    **{"Does the file itself write": "yes", "Which other spellings": "exact", "What is the table called": ""},
    **{"What are the rows called": "", "What do readers call": "", "In which language": ""},  # unit and axes
}
WORDS = {"Which_other": "exact", "What_is_the": "", "What_are": "", "What_do_readers": "", "In_which_language": ""}
WHOLE = [
    *ANSWERS,
    "1000000",
    "exact",
    "",
    "",
    "",
    "",
    "",
    "",
]  # rows of a period, spellings, title, rows, unit, both axes, language
USUAL = ["", "", "", "iso", "", "", "Novel, Film", "", "", "", "", ""]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a test lie in a folder of its own, in an office or not."""
    monkeypatch.chdir(tmp_path)


def asked(
    answers: Sequence[str],
    header: str = LOANS,
    mechanism: str = "",
    name: str = "loans.csv",
    last: bool = True,
    **more: str,
) -> tuple[Decided | None, list[Question]]:
    """What the answers make, None where they end too early; and every question, those that were asked again, too.

    Args:
        last: answers the last questions, of spellings and words, by `LAST`.
        more: answers by the first words of questions, with _ for blanks.
    """
    if header:
        Path(name).write_text(header, encoding="utf-8")
    talk = interview("loans", Path("loans.yaml"), name, read_layout(name), _with_advice, mechanism)
    questions, left = [next(talk)], iter(answers)
    known_ones = {**(LAST if last else {}), **{start.replace("_", " "): end for start, end in more.items()}}
    try:
        for answer in left:
            question = talk.send(answer)
            while known := [end for start, end in known_ones.items() if question.asks.startswith(start)]:
                question = talk.send(known[0])
            questions.append(question)
    except StopIteration as end:
        assert list(left) == [], "more answers than questions"
        return end.value, questions
    return None, questions


def at_terminal(office: Office, answers: Sequence[str], *words: str) -> tuple[Ran, str]:
    """Runs `dphist` with a pseudo-terminal on both sides; gives what it showed. Ctrl-D follows the last answer."""
    ours, theirs = pty.openpty()
    os.write(ours, "".join(f"{answer}\n" for answer in answers).encode() + b"\x04")
    err, code = io.StringIO(), 0
    with contextlib.ExitStack() as stack:
        reads = stack.enter_context(open(os.dup(theirs), encoding="utf-8"))  # noqa: PTH123
        shows = stack.enter_context(open(theirs, "w", encoding="utf-8"))  # noqa: PTH123
        around = (mock.patch.object(sys, "argv", ["dphist", *words]), mock.patch.object(sys, "stdin", reads))
        for one in (office.witnessed(), *around, contextlib.redirect_stdout(shows), contextlib.redirect_stderr(err)):
            stack.enter_context(one)
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
    return Ran(code, "", err.getvalue()), shown_on(ours)


def last_commands() -> list[str]:
    """The last commands that `new` names for loans.yaml: a look, and the release, of the latest finished week."""
    week = ReleaseSpec.load("loans.yaml").latest_period(datetime.now(UTC)).key
    return [f"dphist {verb} loans.yaml --period {week}" for verb in ("look", "release")]


def test_the_answers_make_a_spec_that_check_accepts(office: Office) -> None:
    decided, questions = asked(ANSWERS)
    assert decided is not None and len(questions) == len(ANSWERS)
    Path("loans.yaml").write_text(decided.text, encoding="utf-8")
    checked = office.run("check", "loans.yaml")
    assert (checked.code, checked.err) == (0, "") and "✓ loans.yaml is a valid spec" in checked.out
    assert "! " not in checked.out and "TO_DECIDE" not in decided.text
    spec = ReleaseSpec.load("loans.yaml")
    assert (str(spec.privacy_unit), spec.max_rows_per_unit, str(spec.epsilon), spec.account) == (
        *("card", 3, "1/2"),
        "library",
    )
    assert (spec.period, spec.period_format, spec.mechanism, spec.domain.shape) == ("week", "iso", "adaptive", (22, 3))
    assert float(decided.total) == 26.5 and "a cell is told within ± 19" in decided.text


def test_an_empty_answer_takes_the_default() -> None:
    decided, questions = asked(USUAL, "card_id,Datum,age,kind\n")
    assert decided is not None and [question.default for question in questions] == [
        *("1", "2", "month", "", "3, 4", "ages", "", "none", "cells", "3", "loans", "0.5")
    ]
    assert decided.spec.period == "month" and decided.spec.domain.shape == (22, 3)


def test_only_the_name_of_a_person_s_column_is_a_default_for_who_is_protected() -> None:
    """A newcomer who pressed Enter protected calls, and not patients."""
    header = "call_id,patient_no,Datum,age,kind\n"
    _, questions = asked([], header)
    assert questions[0].default == "2"
    decided, questions = asked(["1", "3", "week", "iso", "4, 5", *ANSWERS[5:]], header)
    warned = [line for line in questions[1].remarks if line.startswith("! ")]
    assert len(warned) == 1 and "call_id looks like the id of an event or a row, and patient_no like" in warned[0]
    _, questions = asked([""], "call_id,Datum,age,kind\n")
    assert questions[0].default == "" and questions[1].problem == "needs an answer"
    _, questions = asked(["patient_no"], header)
    assert questions[1].remarks == ("Protected: each patient_no, with all its rows.",)
    assert decided is not None and str(decided.spec.privacy_unit) == "call_id"


@pytest.mark.parametrize(
    ("column", "label"),
    [("patient_no", "patient"), ("PersonID", "person"), ("library_card_number", "library card"), ("id", "id")],
)
def test_what_readers_call_a_unit_is_proposed_from_the_name_of_its_column(column: str, label: str) -> None:
    answers = [column, *ANSWERS[1:], "", "exact", "", "", "", "", "", ""]
    decided, questions = asked(answers, LOANS.replace("card", column), last=False)
    assert questions[-4].default == label and decided is not None
    assert decided.spec.unit_label == ("" if label == column else label)


@pytest.mark.parametrize(
    ("name", "person", "event"),
    [
        *((name, True, False) for name in ("patient_no", "PersonID", "member", "household_nr", "Kundennummer", "mrn")),
        *((name, False, True) for name in ("call_id", "caseId", "VISIT_NO", "row_id", "Rechnungsnr", "id_visite")),
        *(
            (name, False, False)
            for name in ("id", "household_size", "user_agent", "row", "calls", "kind", "patient_age")
        ),
    ],
)
def test_names_of_persons_and_of_events_are_told_apart(name: str, person: bool, event: bool) -> None:
    assert (names_person(name), names_event(name)) == (person, event)


def test_check_says_that_a_unit_has_the_name_of_an_event(office: Office) -> None:
    decided, _ = asked(["1", *ANSWERS[1:]], LOANS.replace("card", "call_id"))
    assert decided is not None
    Path("loans.yaml").write_text(decided.text, encoding="utf-8")
    told = office.run("check", "loans.yaml", "--json").json["warnings"]
    assert len(told) == 1 and told[0].startswith("call_id looks like the id of an event or a row: with it as")
    assert unit_doubt(["id"], ["age", "person_id"]) and not unit_doubt(["id"], ["age"])
    assert not unit_doubt(["visit_id", "patient_id"], ["patient_id"])


@pytest.mark.parametrize(
    ("units", "column", "doubted"),
    [
        *(
            (["person_id"], name, True)
            for name in (
                "household_size",
                "hhSize",
                "FAMILY_TYPE",
                "income_rank",
                "weight",
                "calibrated_weight",
                "PWGTP",
            )
        ),
        *((["row"], name, True) for name in ("household_size", "persons_in_room", "percentile", "siblings")),
        *((["household_id"], name, False) for name in ("household_size", "family_type", "age")),
        (["household_id"], "income_rank", True),
        *(
            (["person_id"], name, False)
            for name in ("age", "birth_weight", "weight_kg", "frankness", "ward", "rankine")
        ),
    ],
)
def test_names_of_what_other_people_s_rows_make_are_doubted(units: list[str], column: str, doubted: bool) -> None:
    doubt = doubt_of_other_rows(units, ["age", column])
    assert doubt.startswith(f"{column}: the name speaks") is doubted and bool(doubt) is doubted


def test_who_counts_persons_by_household_is_warned_before_and_by_check(office: Office) -> None:
    decided, questions = asked(ANSWERS, LOANS.replace("kind", "family_type"))
    assert decided is not None and any(
        remark.startswith("! family_type: the name speaks") for question in questions for remark in question.remarks
    )
    Path("loans.yaml").write_text(decided.text, encoding="utf-8")
    (warning,) = office.run("check", "loans.yaml", "--json").json["warnings"]
    assert warning.startswith("family_type: ") and "one card more or less changes it" in warning


@pytest.mark.parametrize(
    ("place", "answer", "says"),
    [
        (0, "9", "'9' is no column of the list"),
        (0, "", "needs an answer"),
        (0, "1, 1", "names a column twice"),
        (0, '"card', "unexpected end of data"),
        (1, "1", "'1' is no column of the list"),
        (2, "decade", "period: "),
        (3, "%d.%m", "period_format: must say how a date is written"),
        (4, "ward", "ward is no column of the list"),
        (5, "0 100 7", "width: 7 does not divide"),
        (5, "5 0 1", "stop: 0 must lie above start 5"),
        (5, "young", "names one value"),
        (5, "0 40 18 65", "sort the edges"),
        (3, "TT.MM.JJJJ", "did you mean %d.%m.%Y?"),
        (3, "14.09.2026", "did you mean %d.%m.%Y?"),
        (3, "1/2/2026", "did you mean %d/%m/%Y or %m/%d/%Y?"),
        (3, "yyyy-mm-dd", "did you mean iso?"),
        (5, "0-9=0, 10-19=x", "bands"),
        (6, "Novel, Novel", "values[1]: 'Novel' repeats values[0]"),
        (6, "Novel, other", "holds 'other'"),
        (7, "ward", "ward is no axis of the list; give its number or its name: 3 age   4 kind"),
        (8, "everybody", "is one of cells, ranges, boxes"),
        (9, "0", "max_rows_per_unit: "),
        (9, "many", "is a whole number from 1"),
        (9, "9" * 5000, "is a whole number from 1"),
        (10, "My Library", "account: 'My Library' is not a plain name"),
        (11, "0", "epsilon must lie between"),
    ],
)
def test_a_wrong_answer_is_told_at_once_and_asked_again(place: int, answer: str, says: str) -> None:
    decided, questions = asked([*ANSWERS[:place], answer, *ANSWERS[place:]])
    again = questions[place + 1]
    assert says in again.problem and again.asks == questions[place].asks and questions[place].problem == ""
    right, _ = asked(ANSWERS)
    assert decided is not None and right is not None and decided.text == right.text


@pytest.mark.parametrize(
    ("answer", "axis"),
    [
        ("0 100 5", {"start": 0, "stop": 100, "width": 5, "below": True, "above": True}),
        ("0 1 0.1", {"start": 0, "stop": 1, "width": 0.1, "below": True, "above": True}),
        ("0 18 40 65 100", {"edges": [0, 18, 40, 65, 100], "below": True, "above": True}),
        ("0 18 65", {"edges": [0, 18, 65], "below": True, "above": True}),
        ("-1.5 0 2.5 3", {"edges": [-1.5, 0, 2.5, 3], "below": True, "above": True}),
        ("a, b", {"values": ["a", "b"]}),
        ('"a, b", no', {"values": ["a, b", "no"]}),
        ("0-17=0, 18-64=18, 65+=65", {"bands": {"0-17": 0, "18-64": 18, "65+": 65}}),
        (
            "2026-01-01 2027-01-01 month",
            {"calendar": "month", "start": "2026-01-01", "stop": "2027-01-01", "format": "iso"},
        ),
        ("icd10", {"values": LISTS["icd10"]["values"]}),
        ("countries", {"values": LISTS["countries"]["values"]}),
        ("ages", {**LISTS["ages"]}),
    ],
)
def test_an_axis_is_written_as_it_was_answered(answer: str, axis: dict[str, Any]) -> None:
    written = [] if "calendar" not in axis else ["iso"]  # how its dates are, since the column is text
    decided, _ = asked([*ANSWERS[:4], "4", answer, *written, *ANSWERS[7:]])
    assert decided is not None
    Path("loans.yaml").write_text(decided.text, encoding="utf-8")
    assert attributes("loans.yaml")["axes"] == [{"column": "kind", **axis, "other": True}]
    assert all(len(line) < 200 for line in decided.text.splitlines())


def test_bands_of_numbers_become_the_bins_that_were_meant() -> None:
    bands = [*ANSWERS[:4], "3", "0-17=0, 18-64=18, 65+=65"]
    _, questions = asked(bands, last=False)
    asks = questions[-1]
    assert asks.asks == "Does the file itself write '0-17' in age? yes or no" and asks.default == ""
    assert "a number, such as 12, falls to `other`" in asks.because[0]
    decided, _ = asked([*bands, "no", *ANSWERS[7:], "", "", "", "", "", ""], last=False)
    assert decided is not None and decided.spec.domain.shape == (5,)
    Path("loans.yaml").write_text(decided.text, encoding="utf-8")
    (axis,) = attributes("loans.yaml")["axes"]
    assert axis["edges"] == [0, 18, 65] and axis["below"] and axis["above"] and "bands" not in axis


def test_back_goes_to_the_question_before_and_changes_its_answer() -> None:
    decided, questions = asked(["back", *ANSWERS[:3], "decade", "back", "month", *ANSWERS[3:5], "back", *ANSWERS[4:]])
    assert decided is not None and decided.spec.period == "month" and questions[1].asks == questions[0].asks
    right, _ = asked([*ANSWERS[:2], "month", *ANSWERS[3:]])
    assert right is not None and right.text == decided.text


def test_a_running_number_is_no_axis_by_default_and_no_axis_falls_out_by_one() -> None:
    header = "card,Datum,lfd_nr,Barcode,age,kind,branch,language\n"
    _, questions = asked(ANSWERS[:4], header)
    assert questions[4].default == "5, 6, 7"
    _, questions = asked([*ANSWERS[:4], "kind", ""], header)
    assert questions[-1].problem == "needs an answer"


def test_a_column_that_names_nothing_in_sql_is_asked_for_its_name() -> None:
    header = LOANS.replace("age", "Alter").replace("kind", "Select")
    _, questions = asked([*ANSWERS[:4], "3, 4", "0 18 65"], header)
    assert questions[6].asks == "What is Alter called in published files?" and questions[6].default == "age"
    assert "it is an SQL word" in questions[6].because[0]
    answers = [*ANSWERS[:4], "3, 4", "0 18 65", "alter", "alter_jahre", "Novel, Film", "", *ANSWERS[7:]]
    decided, questions = asked(answers, header)
    assert "is an SQL word" in questions[7].problem and questions[9].default == "select_value"
    assert decided is not None and [axis.name for axis in decided.spec.domain.axes] == ["alter_jahre", "select_value"]


def test_public_lists_are_whole_and_offered_by_name_and_type() -> None:
    countries: Any = LISTS["countries"]["values"]
    assert len(countries) == 249 and list(countries) == sorted(countries) and countries["NO"] == "Norway"
    assert len({*countries.values()}) == 249 and len(LISTS["icd10"]["values"]) == 22  # type: ignore[arg-type]
    named = {
        "age": "ages",
        "alter": "ages",
        "country_code": "countries",
        "icd_chapter": "icd10",
        "page": "",
        "ward": "",
    }
    assert {column: list_for(column, "text", typed=False) for column in named} == named
    assert list_for("age", "boolean", typed=True) == "yes-no" and list_for("age", "number", typed=True) == "ages"
    assert list_for("age", "text", typed=True) == "" and list_for("country_code", "number", typed=True) == ""


def test_a_list_is_no_default_where_only_a_word_of_the_name_speaks_of_it() -> None:
    """Such columns hold text in other forms; with the list, every row would be `other` and the period paid for."""
    near = {"age_group": "ages", "icd10_code": "icd10", "country_name": "countries", "country": "countries"}
    for column, name in near.items():
        _, questions = asked(ANSWERS[:5], LOANS.replace("age", column))
        assert questions[5].default == "" and f"The name speaks of `{name}`" in questions[5].because[-1]
    _, questions = asked(ANSWERS[:5])
    assert questions[5].default == "ages" and "The name speaks of" not in " ".join(questions[5].because)


def test_what_falls_to_other_is_told_at_the_end() -> None:
    decided, _ = asked(ANSWERS)
    assert decided is not None
    assert decided.others == ("age: what is no number from 0, such as text", "kind: every text but Novel, Film")
    for answer, told in (
        ("0 10 5", "what is no number, such as text"),
        ("0-17=0, 18+=18", "every text but '0-17', '18+'"),
        ("a, b, c, d, e, f", "every text but a, b, c, d and 2 more"),
        ("2026-01-01 2027-01-01 month", "what is no date from 2026-01-01 to before 2027-01-01"),
    ):
        written = ["iso"] if answer.endswith("month") else []
        decided, _ = asked([*ANSWERS[:4], "4", answer, *written, *ANSWERS[7:]])
        assert decided is not None and decided.others == (f"kind: {told}",)


def test_left_out_columns_are_no_axes_and_one_axis_is_needed() -> None:
    decided, questions = asked([*ANSWERS[:5], "-", "-", "4", "a, b", *ANSWERS[7:]])
    assert decided is not None and [axis.name for axis in decided.spec.domain.axes] == ["kind"]
    assert questions[7].remarks == ("No axis is left: a table needs at least one.",)


def test_rows_of_their_own_need_no_cap_and_no_outcome() -> None:
    decided, questions = asked(["row", "none", "4", "a, b", "cells", "library", "1/3"])
    assert decided is not None and len(questions) == 7
    assert decided.spec.sensitivity == 1 and 'epsilon: "1/3"' in decided.text and "max_rows" not in decided.text


@pytest.mark.slow
def test_what_shall_be_served_names_the_mechanism_unless_an_option_does() -> None:
    ranges, _ = asked([*ANSWERS[:8], "ranges", *ANSWERS[9:]])
    tables, _ = asked([*ANSWERS[:8], "tables", *ANSWERS[9:]])
    assert ranges is not None and ranges.spec.mechanism == "multiscale" and "# To serve ranges:" in ranges.text
    assert tables is not None and tables.spec.mechanism == "tables" and "tables: {all: 2}" in tables.text
    named, questions = asked([*ANSWERS[:8], *ANSWERS[9:]], mechanism="boost")
    assert named is not None and named.spec.mechanism == "boost" and len(questions) == len(ANSWERS) - 1
    with pytest.raises(Refused, match="Nothing was written"):
        asked(ANSWERS[:8], mechanism="noise_first")


@pytest.mark.parametrize(("rows", "written"), [("20", "adaptive_boxes"), ("1000000", "multiscale"), ("", "multiscale")])
def test_a_guess_of_few_rows_names_another_mechanism_for_boxes(rows: str, written: str) -> None:
    answers = [*ANSWERS[:8], "boxes", *ANSWERS[9:]]
    _, questions = asked([*answers, rows, "exact"], last=False)
    told = [one for question in questions for one in question.remarks if one.startswith("Mechanism: ")]
    assert told[0].startswith("Mechanism: `multiscale:levels=overlapping`.") and f"Mechanism: `{written}" in told[-1]
    assert len(told) == (2 if written == "adaptive_boxes" else 1)
    decided, _ = asked(answers, About_how_many_rows=rows)
    assert decided is not None and decided.spec.mechanism == written
    assert f"# To serve boxes: `{written}" in decided.text


def test_a_likely_outcome_is_the_default_and_buys_how_far_its_shares_move() -> None:
    decided, questions = asked([*ANSWERS[:6], "yes, no", "", *ANSWERS[8:]], LOANS.replace("kind", "readmitted"))
    assert questions[7].default == "readmitted" and decided is not None and decided.spec.quality is not None
    assert decided.spec.quality.by == ("readmitted",)


def test_an_outcome_is_named_by_the_number_of_its_column() -> None:
    by_number, questions = asked([*ANSWERS[:7], "4", *ANSWERS[8:]])
    assert questions[7].because[0] == "axes: 3 age   4 kind"
    assert by_number is not None and by_number.spec.quality is not None and by_number.spec.quality.by == ("kind",)


@pytest.mark.parametrize("unit", ["card", "row"])
def test_a_quality_table_is_bought_only_for_rows_of_which_it_tells(office: Office, unit: str) -> None:
    """By the rule of `check`, which advised against the table that `new` had written for so few rows."""
    known = [*ANSWERS[1:7], *ANSWERS[8:9], *ANSWERS[10:]] if unit == "row" else ANSWERS[1:]
    first, questions = asked([unit, *known, "many", "1000000"], last=False, **WORDS)
    rows = questions[1 + len(known)]
    assert rows.asks.startswith("About how many rows does a week hold?") and rows.default == "unknown"
    assert questions[2 + len(known)].problem == "is a whole number, or `unknown`"
    assert first is not None and first.spec.quality is not None
    needed = rows_for_quality(first.spec)
    assert needed is not None and f"With fewer than {needed:,} rows a week" in rows.because[0]
    for number, kept in ((needed, True), (needed - 1, False), ("unknown", False)):
        decided, questions = asked([unit, *known], About_how_many_rows=str(number))
        assert decided is not None and (decided.spec.quality is not None) is kept
        assert ("quality:" in decided.text) is kept
        advised = small_share(decided.spec, needed - 1, "week", expected=True)
        assert bool(advised) is kept
    named, _ = asked(["card", *ANSWERS[1:7], "kind", *ANSWERS[8:]], About_how_many_rows="unknown")
    assert named is not None and named.spec.quality is not None, "whoever names an outcome wants to be told of it"


def test_a_spreadsheet_s_numbers_are_asked_for(office: Office) -> None:
    header = "\ufeff" + LOANS.replace(",", ";")
    for end in ("ages", "0 18 40 65 100"):
        _, questions = asked([*ANSWERS[:5], end, *ANSWERS[6:7]], header)
        assert "Are numbers written 3,5?" in questions[-1].asks and questions[-1].default == ""
    decided, questions = asked([*ANSWERS[:7], "maybe", "yes", *ANSWERS[7:]], header)
    assert decided is not None and decided.spec.decimal_comma and questions[8].problem == "is yes or no"
    assert (decided.spec.csv_delimiter, decided.spec.csv_quote) == (";", '"')


def test_an_encoding_is_asked_for_where_a_header_line_does_not_tell() -> None:
    header = LOANS.replace(",", ";")
    decided, questions = asked([*ANSWERS[:7], "ebcdic", "windows-1252", "no", *ANSWERS[7:]], header)
    assert decided is not None and decided.spec.csv_encoding == "windows-1252"
    assert "In which encoding" in questions[7].asks and "must be one of utf-8, windows-1252" in questions[8].problem
    assert 'csv_encoding: "windows-1252"' in decided.text
    decided, _ = asked([*ANSWERS[:7], "", "no", *ANSWERS[7:]], header)
    assert decided is not None and decided.spec.csv_encoding == "utf-8"


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        ("exact", {}),
        ("", {"tidy": ["trim", "lower", "nfc"]}),
        ("tidy, Romane=Novel", {"tidy": ["trim", "lower", "nfc"], "spellings": {"Romane": "Novel"}}),
        ("Romane=Novel, movie = Film", {"spellings": {"Romane": "Novel", "movie": "Film"}}),
    ],
)
def test_spellings_are_asked_for_of_each_axis_of_categories(answer: str, fields: dict[str, Any]) -> None:
    decided, questions = asked([*ANSWERS, "", answer, "", "", "", "", "", ""], last=False)
    assert decided is not None and len(questions) == len(ANSWERS) + 8
    Path("loans.yaml").write_text(decided.text, encoding="utf-8")
    kind = {"column": "kind", "values": ["Novel", "Film"], "other": True, **fields}
    assert attributes("loans.yaml")["axes"][1] == kind


def test_words_for_readers_are_asked_last_and_stand_in_no_digest() -> None:
    plain, questions = asked(WHOLE, last=False)
    assert plain is not None
    assert [one.default for one in questions[-6:]] == ["Loans", "records", "card", "age", "kind", "en"]
    assert plain.spec.unit_label == "" and "unit_label" not in plain.text
    words = ("Ausleihen nach Alter", "Ausleihen", "Leser", "Alter der Leser", "")
    answers = [*ANSWERS, "1000000", "Comics=Novel, Comics=Film, x=y", "exact", *words, "ru", "de"]
    told, questions = asked(answers, last=False)
    assert told is not None and (told.spec.title, told.spec.language) == ("Ausleihen nach Alter", "de")
    assert told.spec.digest == plain.spec.digest and plain.spec.language is None
    assert told.spec.counted == "Ausleihen" and "counted: Ausleihen" in told.text
    assert told.spec.unit_label == "Leser" and "unit_label: Leser" in told.text
    assert [axis.label for axis in told.spec.axes] == ["Alter der Leser", ""]
    assert "stands for a category that `values` does not list" in questions[-8].problem
    assert "language" in questions[-1].problem


def test_what_a_year_costs_stands_beside_every_epsilon(office: Office) -> None:
    _, questions = asked(ANSWERS)
    epsilon = " ".join(questions[11].because)
    assert questions[11].default == "0.1" and "a year of weeks 26.5" in epsilon and "a year of weeks 106" in epsilon
    Path("loans.csv").write_text(LOANS)
    ran, shown = at_terminal(office, WHOLE, "new", "loans.csv")
    assert "A year of weeks takes epsilon 26.5 in all, which bounds little" in " ".join(f"{ran.err}{shown}".split())
    ran, shown = at_terminal(office, [*WHOLE[:11], "", *WHOLE[12:]], "new", "less", "--from", "loans.csv")
    assert "--total 5.3 --renews yearly" in shown and "bounds little" not in f"{ran.err}{shown}"


def test_a_source_that_is_allowed_is_not_allowed_again(office: Office) -> None:
    Path("loans.csv").write_text(LOANS)
    assert office.run("init").code == 0
    opening = ("ledger", "open", "library", "--privacy-unit", "card", "--neighbours", "add_remove", "--total", "9")
    assert office.run(*opening, "--source", "loans.csv").code == 0
    ran, shown = at_terminal(office, WHOLE, "new", "loans.csv")
    commands = [line.strip() for line in shown.splitlines() if line.startswith("  dphist ")]
    assert ran.code == 0 and commands == ["dphist check loans.yaml", *last_commands()]


def test_what_records_hold_changes_no_question() -> None:
    _, one = asked(ANSWERS)
    _, other = asked(ANSWERS, LOANS.splitlines()[0] + "\ncanary,14.09.2026,999,canary\n" * 50)
    assert one == other


def test_types_of_columns_choose_forms(office: Office) -> None:
    kinds: dict[str, pa.DataType] = {"patient_id": pa.int64(), "age": pa.int32(), "urgent": pa.bool_()}
    write_parquet("visits.parquet", **kinds, at=pa.date32())
    answers = ["", "", "week", "2,3", "0 100 10", "", "none", "cells", "2", "health", "1"]
    decided, questions = asked(answers, "", name="visits.parquet")
    assert decided is not None and questions[5].default == "yes-no"
    assert "whole: true" in decided.text and "period_format" not in decided.text


@pytest.mark.slow
def test_hostile_column_names_change_nothing_but_their_own_place(office: Office) -> None:
    for name in HOSTILE:
        write_parquet("loans.parquet", card=pa.string(), **{name: pa.string()}, fine=pa.string())
        layout = read_layout("loans.parquet")
        known = name in [column.name for column in layout.columns] and len(_columns(layout.columns)) == 3
        answers = ["1", "none", "2, 3" if known else "2", *["a, b"] * (1 + known), "none", "cells", "1", "a", "1"]
        decided, questions = asked(answers, "", name="loans.parquet", What_is="")
        assert decided is not None, name
        Path("loans.yaml").write_text(decided.text, encoding="utf-8")
        assert [axis["column"] for axis in attributes("loans.yaml")["axes"]] == ([name, "fine"] if known else ["fine"])
        shown = [line for question in questions for line in (question.asks, *question.because, *question.remarks)]
        assert all(letter.isprintable() for line in [*shown, *decided.text.splitlines()] for letter in line), name


def _columns(columns: Sequence[Any]) -> list[Any]:
    """The columns that a spec can name."""
    from dphist_pipeline.planning.drafting import roles_of

    roles = roles_of(mock.Mock(columns=columns, delimiter=""))
    return [*roles.ids, *roles.codes, *roles.dates, *roles.others]


@pytest.mark.slow
def test_a_terminal_is_asked_and_the_commands_that_end_it_work_in_this_order(office: Office) -> None:
    Path("loans.csv").write_text(LOANS)
    ran, shown = at_terminal(office, ["7", *WHOLE], "new", "loans.csv")
    assert (ran.code, ran.err) == (0, "") and "'7' is no column of the list" in shown
    assert "These rows fall to `other`" in shown and "kind: every text but Novel, Film" in shown
    assert "every later card of the account says that you looked." in shown
    assert "✓ Wrote loans.yaml, which `dphist check` accepts" in shown and "a year of weeks 26.5" in shown
    commands = [line.strip() for line in shown.splitlines() if line.startswith("  dphist ")]
    opening = "dphist ledger open --for loans.yaml --total 26.5 --renews yearly"
    assert commands == ["dphist init", opening, *last_commands()]
    first, opened, _, released = (command.removeprefix("dphist ").split() for command in commands)
    assert office.run(*first).code == 0
    digest = office.run(*opened, "--json").json["digest"]
    assert office.run(*opened, "--yes", digest).code == 0
    assert office.run(*released).code == 0


SHELVES = "Bücher, Hörbücher"


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
def test_what_new_writes_holds_back_files_that_are_not_as_declared(
    office: Office, rows: str, encoding: str, doubt: str
) -> None:
    header = "card;age;kind\n" if ";" in rows else "card,age,kind\n"
    semicolons = ["utf-8", "no"] if ";" in rows else []  # the encoding, and whether numbers are written 3,5
    answers = ["1", "none", "2, 3", "0 100 10", SHELVES, *semicolons, "none", "cells", "1", "library", "1"]
    decided, _ = asked(answers, header)
    assert decided is not None and "\n  publish: if_plausible " in decided.text
    Path("loans.yaml").write_text(decided.text, encoding="utf-8")
    lines = [rows.format(number) for number in range(500)]
    Path("loans.csv").write_text(header + "".join(lines), encoding=encoding)
    opening = ("ledger", "open", "--for", "loans.yaml", "--total", "9")
    assert office.run("init").code == 0
    assert office.run(*opening, "--yes", office.run(*opening, "--json").json["digest"]).code == 0
    made = office.run("release", "loans.yaml", "--json").json
    assert made.get("awaits_approval", False) is bool(doubt) and doubt in made.get("why", "")


@pytest.mark.slow
def test_an_account_that_is_open_is_not_opened_again(office: Office) -> None:
    """The second command allows what the spec reads; a spec of other people is told to name another account."""
    Path("loans.csv").write_text(LOANS)
    opening = ("ledger", "open", "library", "--privacy-unit", "card", "--neighbours", "add_remove", "--total", "9")
    assert office.run("init").code == 0 and office.run(*opening).code == 0
    ran, shown = at_terminal(office, WHOLE, "new", "loans.csv")
    commands = [line.strip() for line in shown.splitlines() if line.startswith("  dphist ")]
    second = "dphist ledger allow --for loans.yaml"
    assert ran.code == 0 and commands == ["dphist check loans.yaml", second, *last_commands()]
    allowing = second.removeprefix("dphist ").split()
    digest = office.run(*allowing, "--json").json["digest"]
    assert office.run(*allowing, "--yes", digest).code == 0
    ran, shown = at_terminal(
        office, ["kind", *ANSWERS[1:4], "3, 1", "ages", *WHOLE[6:]], "new", "more", "--from", "loans.csv"
    )
    assert ran.code == 0 and "ledger open --for more.yaml" in shown
    assert "Account library is open, and protects card (add_remove)" in " ".join(f"{ran.err}{shown}".split())


def test_the_end_of_input_writes_nothing(office: Office) -> None:
    Path("loans.csv").write_text(LOANS)
    ran, _ = at_terminal(office, ANSWERS[:-1], "new", "loans.csv")
    assert ran.code == 130 and ran.err.endswith("Nothing was written, decided or spent.\n")
    assert not Path("loans.yaml").exists()


def test_without_a_terminal_or_with_no_input_the_draft_has_every_decision_open(office: Office) -> None:
    Path("loans.csv").write_text(LOANS)
    assert office.run("new", "loans.csv").code == 0
    drafted = Path("loans.yaml").read_bytes()
    assert b"TO_DECIDE" in drafted
    for words in (["new", "loans.csv", "--no-input"], ["new", "loans.csv", "--json"]):
        Path("loans.yaml").unlink()
        ran, shown = at_terminal(office, [], *words)
        assert ran.code == 0 and Path("loans.yaml").read_bytes() == drafted and "Enter takes" not in shown


@pytest.mark.parametrize(("output", "says"), [("taken.yaml", "is there already"), ("no/such.yaml", "does not exist")])
def test_a_file_that_cannot_be_written_is_refused_before_the_first_question(
    office: Office, output: str, says: str
) -> None:
    Path("loans.csv").write_text(LOANS)
    Path("taken.yaml").write_text("precious")
    ran, shown = at_terminal(office, ANSWERS, "new", "loans.csv", "--output", output)
    assert ran.code == 1 and says in ran.err and "Who is protected?" not in shown
    assert Path("taken.yaml").read_text() == "precious"


@pytest.mark.slow
def test_ctrl_c_at_a_terminal_writes_nothing(office: Office) -> None:
    """In a process of its own, whose terminal sends the signal."""
    Path("loans.csv").write_text(LOANS)
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # shells have what they start in the background ignore it
        os.execv(sys.executable, [sys.executable, "-c", COMMAND, "new", "loans.csv"])
    shown = b""
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 65536):
            shown += part
            if part.rstrip().endswith(b">") or b"> [" in part:
                os.write(terminal, b"\x03")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130
    assert b"Nothing was written" in shown and not Path("loans.yaml").exists()
