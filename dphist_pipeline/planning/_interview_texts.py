"""What the questions of `dphist new` say, and the spec that their answers make, as YAML with comments."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from dphist_pipeline.domain import Axis, BandedAxis, ByText, CalendarAxis
from dphist_pipeline.errors import Refused, first_of
from dphist_pipeline.planning.drafting import PUBLISH, comment_text, draft_refused, field, yaml_text
from dphist_pipeline.planning.serving import Serving
from dphist_pipeline.releasing.release_spec import ReleaseSpec

MOST_TEXTS = 4
LONGEST_FLOW = 110  # signs of an axis on one line
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_BEFORE_AXES = (
    *("title", "language", "counted", "source", "csv_delimiter", "csv_quote", "csv_encoding", "decimal_comma"),
    *("privacy_unit", "unit_label", "max_rows_per_unit"),
    *("neighbours", "epsilon", "account", "quality", "mechanism", "settings", "tables"),
)
_AFTER_AXES = ("period", "period_column", "period_format", "time_zone")
_COMMENTS = {
    "title": "for people; may change at any time",
    "counted": "what readers call the rows",
    "privacy_unit": "who is protected",
    "unit_label": "what readers call one of them",
    "max_rows_per_unit": "so many rows of one unit count in a period",
    "neighbours": "hides whether a unit is present at all",
    "account": "who pays",
    "quality": "what the bound cuts",
    "time_zone": "of the periods, as Europe/Brussels",
}
_NUMBERS = ("start", "stop", "width", "edges", "epsilon")

UNIT = "Who is protected? A column, several with commas between, or `row`"
WHY_UNIT = (
    "All rows of one unit are hidden together, so take what names a person, and not a visit.",
    "Rule of thumb: the person, or the household if rows speak of several people; `row` only if nobody has two rows.",
)
PERIOD = "Which column says when a row happened? `none` for one table without periods"
WHY_PERIOD = (
    "A table is published for each period, and each pays epsilon of its own.",
    "Rule of thumb: the day on which something happened, and not the day on which it was entered.",
)
WHY_LENGTH = (
    "Noise is the same for each table, and a longer period has more rows: a quarter has 13 times those of a week.",
    "Rule of thumb: the longest that readers can wait for.",
)
_FORMATS = ("`%d.%m.%Y` is 14.09.2026", "`iso` is 2026-09-14", "`%d/%m/%Y` is 14/09/2026")


def why_format(of_spreadsheet: bool) -> tuple[str, ...]:
    """What to know before saying how dates are written, the likelier form first."""
    first, iso, *rest = _FORMATS
    forms = (first, iso, *rest) if of_spreadsheet else (iso, first, *rest)
    return (
        "A date that does not parse falls into no period, and the period is paid for all the same.",
        f"{'; '.join(forms)}. Look it up in the code book.",
    )


COLUMNS = "Which columns do readers need? Numbers or names, with commas between"
WHY_COLUMNS = (
    "Each becomes an axis. Every combination is a cell with noise of its own: cells multiply, and rows do not.",
    "None that is made of other people's rows (a household's size, a rank, a calibrated weight): epsilon does not "
    "cover it.",
    "Rule of thumb: two or three; at least 20 rows a cell in a period.",
)
WHY_AXIS = (
    "Take bins, bounds and categories from a code book, a law or a map, never from the records: a bound that is taken "
    "from them tells of the person at the bound."
)
_BINS = "  `0 100 5`: numbers, in bins from 0 to 100 by 5;   `0 18 40 65 100`: numbers, in bins by their edges"
_CATEGORIES = '  `book, film`: categories ("a, b" in quotes holds a comma)'
_OTHER_FORMS = (
    "  `0-17=0, 18-64=18, 65+=65`: only where the file itself writes 0-17, as text: bands, with their lower ends",
    "  `2026-01-01 2027-01-01 month`: days       `-`: no axis",
)
NUMBERS_FIRST, TEXTS_FIRST = (_BINS, _CATEGORIES, *_OTHER_FORMS), (_CATEGORIES, _BINS, *_OTHER_FORMS)
ENCODING = "In which encoding is the file: utf-8, windows-1252 or latin-1?"
WHY_ENCODING = (
    "The header line has no letter that tells. In the wrong one, a value with a letter such as ä or é is undeclared.",
    "Rule of thumb: windows-1252 for `CSV` of a spreadsheet on Windows; utf-8 for its `CSV UTF-8`, and else.",
)
WHY_SPELLINGS = (
    "`tidy`: case, blanks at the ends and forms of accents do not count. `exact`: every letter counts.",
    "`tidy, Romane=Novel, novels=Novel`: other spellings with the category that they count in.",
    "Take them from a code book, not from the records: the list is public. All others fall to `other`.",
)
TITLE = "What is the table called on cards and pages?"
WHY_TITLE = ("It is for readers, in no digest, and may change at any time.", "Rule of thumb: what is counted, by what.")
WHY_LANGUAGE = (
    "Sentences, days and numbers of cards, pages and pictures; it may change at any time.",
    "Rule of thumb: that of the readers; the words of your columns and categories stay as you wrote them.",
)
COUNTED = "What are the rows called that are counted?"
WHY_COUNTED = (
    "Cards and pages say 1,204 loans; it is in no digest, and may change at any time.",
    "Rule of thumb: the word that readers use, in the plural: loans, visits, persons.",
)
UNIT_LABEL = "What do readers call one of those who are protected?"
WHY_UNIT_LABEL = (
    "Cards and pages say at most 3 rows of a patient, and not of a patient_no; it is in no digest, and may change.",
    "Rule of thumb: one word, in the singular: patient, reader, household.",
)
WHY_LABEL = (
    "Cards, pictures and pages say it; published columns keep their name.",
    "Rule of thumb: the words that readers use, in their language: age, kind of medium.",
)
DECIMALS = "Are numbers written 3,5? yes or no"
WHY_DECIMALS = (
    "Fields are parted by semicolons, as by spreadsheets where 3,5 is a number; 3.5 would then be none.",
    "Rule of thumb: yes, if a spreadsheet wrote the file. Whole numbers are read either way.",
)
OUTCOME = "Which axis is an outcome, such as readmitted, died, paid late? At most two, or `none`"
WHY_OUTCOME = (
    "The cap cuts units with many rows, so it moves shares of whatever makes people come again.",
    "What it means: a part of epsilon buys how far the shares of this axis are moved; without it that is unknown.",
)
SERVES = "What shall be answered well: cells, ranges, boxes, prefixes or tables?"
WHY_SERVES = (
    "A public rule of the axes names the mechanism; it is written into the spec once.",
    "Rule of thumb: cells; ranges or boxes where readers mostly add cells up; tables for many small tables that agree.",
)
WHY_CAP = (
    "More rows of a unit are left out at random; noise grows with the cap.",
    "Rule of thumb: what most people stay below by the rules of the service, not the most that anybody has.",
)
ACCOUNT = "Which account of the ledger pays?"
WHY_ACCOUNT = (
    "All that is charged to an account adds up, and bounds what may ever be told about one unit.",
    "Rule of thumb: one account for all tables about the same people, named for them: health, library.",
)
WHY_EPSILON = (
    "Epsilon bounds how much the table may tell about one unit; the epsilons of all periods add up.",
    "Rule of thumb: 1 or less for all that is ever said is strict; others published a day at 2.64, a birth at 9.98.",
)


def rows_asked(per: str) -> str:
    """The question for the rows of a period, by which a quality table is bought or not."""
    return f"About how many rows does {'the table' if per == 'release' else f'a {per}'} hold? `unknown` if nobody knows"


def why_rows(rows_needed: int, tells: str, per: str) -> tuple[str, ...]:
    """Why it is asked how many rows a period holds."""
    return (
        f"A part of epsilon can buy a table that tells {tells}. With fewer than {rows_needed:,} rows a {per} it cannot "
        "tell that, and all of epsilon goes to the counts.",
        "Rule of thumb: as reports or plans say it; about is enough, and no file says the number.",
    )


def without_quality(rows_needed: int, per: str) -> str:
    """What it means that no quality table is bought."""
    return f"No `quality` is written: its table needs {rows_needed:,} rows a {per}. All of epsilon goes to the counts."


def why_bands(first: str) -> tuple[str, ...]:
    """Why it is asked whether bands are text in the file."""
    return (
        f"yes: the text {first} is a band, and a number, such as 12, falls to `other`. no: the file holds numbers, and "
        "the lower ends become the edges of bins.",
        "Look it up in the code book: where it is wrong, every row is `other`, and paid for.",
    )


def why_name(column: str) -> tuple[str, ...]:
    """Why a published column needs a name of its own."""
    return (
        f"{column} cannot stand in SQL without quotes: it is an SQL word, or not of letters a to z, digits and _.",
        "Rule of thumb: a plain word in lower case that tells what it is, such as age.",
    )


def nothing_to_publish(source: str) -> Refused:
    """No column of a file is left for an axis."""
    return draft_refused(source, "no column is left to publish by. Nothing was written")


def mechanism_refused(mechanism: str, problem: str) -> Refused:
    """The mechanism of the command line does not serve the axes that were answered."""
    return draft_refused(mechanism, f"{problem}. Nothing was written; leave the option out, and a question asks for it")


def unit_in_words(unit: object) -> str:
    """The unit that is protected, in words."""
    if isinstance(unit, list):
        return f"each {' with '.join(comment_text(name) for name in unit)}, with all its rows"
    return (
        "each row, as if no two were of one person"
        if unit == "row"
        else f"each {comment_text(str(unit))}, with all its rows"
    )


def list_may_fit(name: str, in_words: str) -> str:
    """A public list that a column's name speaks of, where nothing says that its values are written so."""
    return (
        f"The name speaks of `{name}`, {in_words}. Take it only if a code book says that the file writes them so: "
        "every row with another value falls to `other`."
    )


def other_in_words(axis: Axis) -> str:
    """Which values of an axis fall to `other`: every row of them is noise that was paid for, if the spec is wrong."""
    if isinstance(axis, ByText):
        texts = list(axis.bands if isinstance(axis, BandedAxis) else axis.values)
        return f"{axis.name}: every text but {first_of([comment_text(text) for text in texts], MOST_TEXTS)}"
    if isinstance(axis, CalendarAxis):
        return f"{axis.name}: what is no date from {axis.first_days[0]} to before {axis.first_days[-1]}"
    below = "" if axis.below else f" from {axis.edges[0]:g}"
    above = "" if axis.above else f" below {axis.edges[-1]:g}"
    return f"{axis.name}: what is no number{below}{above}, such as text"


def spec_text(release: str, file: str, answers: Mapping[str, Any], within: str, serving: Serving | None) -> str:
    """A spec that says what was answered; `serving` is the rule that named the mechanism, None if a person did."""
    return "\n".join(_lines(release, file, answers, within, serving)) + "\n"


def _lines(release: str, file: str, answers: Mapping[str, Any], within: str, serving: Serving | None) -> Iterator[str]:
    yield f"# Made of the answers to `dphist new`, by header and types of {comment_text(file)}; no value was read."
    yield from (f"type: {ReleaseSpec.component}", "attributes:", f"  release: {release}")
    comments = {**_COMMENTS, "epsilon": within}
    for name in _BEFORE_AXES:
        if name == "mechanism" and serving is not None:
            rule = textwrap.wrap(f"To serve {serving.serves}: `{serving.written}`. {serving.because}.", LONGEST_FLOW)
            yield from (f"  # {line}" for line in rule)
        if name in answers:
            yield _field(name, answers[name], comments)
    yield "  axes:"
    for axis in answers["axes"]:
        yield from _axis_lines(axis)
    for name in _AFTER_AXES:
        if name in answers:
            yield _field(name, answers[name], comments)
    yield PUBLISH


def _field(name: str, value: Any, comments: Mapping[str, str]) -> str:
    yaml_value = _value(name, value)
    return field(name, yaml_value, comments[name]) if name in comments else f"  {name}: {yaml_value}"


def _axis_lines(axis: Mapping[str, Any]) -> Iterator[str]:
    flow = f"    - {_value('', axis)}"
    if len(flow) <= LONGEST_FLOW:
        yield flow
        return
    for number, (name, value) in enumerate(axis.items()):
        start = "    - " if number == 0 else "      "
        if isinstance(value, Mapping):
            yield f"{start}{name}:"
            yield from (f"        {yaml_text(key)}: {_value(name, inner)}" for key, inner in value.items())
        else:
            yield f"{start}{name}: {_value(name, value)}"


def _value(name: str, value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, Mapping):
        inside = name if name == "bands" else ""
        return f"{{{', '.join(f'{yaml_text(key)}: {_value(inside or key, inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list):
        inside = name if name == "edges" else ""
        return f"[{', '.join(_value(inside, inner) for inner in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    is_plain_number = name in (*_NUMBERS, "bands") and isinstance(value, str) and _NUMBER.fullmatch(value)
    return str(value) if is_plain_number or not isinstance(value, str) else yaml_text(value)
