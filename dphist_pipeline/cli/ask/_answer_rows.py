"""The questions of `dphist answer` that are told as a table, and how the table is printed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.markup import escape

from dphist_pipeline.cli.terminal import out, print_json, print_table

if TYPE_CHECKING:
    from dphist_pipeline.answering.asking import Publication
    from dphist_pipeline.base.domain import BinnedAxis
    from dphist_pipeline.estimates.answers import Answer, Quantile
    from dphist_pipeline.estimates.chosen_cells import Condition
    from dphist_pipeline.publishing.headline_figures import HeadlineFigure

    Box = Mapping[str, Condition]

# Questions whose intervals may cover chance, too.
VARYING = ("changes", "difference", "mean", "ranks", "ratio", "share", "sum")
Rows = list[dict[str, Any]]
MARKS = {"fair": " ~", "poor": " !"}  # after an estimate; a terminal is too narrow for words
# Questions that `--by` answers for each value of its axes; of means and sums those of an amount.
BY_VALUES = ("changes", "compare", "mean", "ratio", "share", "sum")
BOXES = ("difference", "ratio", "share")  # whose conditions may be empty for a difference alone: all cells
# What the numbers of a question are; those of others are counts.
HEADS = {
    **{"ratio": "ratio", "share": "share", "mean": "mean", "sum": "sum", "standardise": "rate"},
    **{"difference": "difference", "changes": "change", "compare": "change"},
}
FIGURES = ("by", "over", "ranks")  # answered by counts of their own
COUNTS = ("by", "difference", "changes", "over", "ranks", "compare")
MOVED = re.compile("(.* by about|.* by at most|.* would be) (.*)")  # how far the bound moves an answer
# What the bound cut here, and what it cut there, in the same words.
TWICE = re.compile(
    r"(in [^.(]+?) (among .*?\)), the bound cut (about .*?\)); (.*)\. In ([^.(]+?) \2, the bound cut (about .*?\)); \4"
)
# That the bound cut nothing that can be seen, here and there.
UNCUT = re.compile(
    r"in the first period (no cut .+?); at most ([\d,]+) \(95 %\)\. In the second one \1; at most ([\d,]+) \(95 %\)"
)
IN_UNITS = ("estimate", "unbiased", "noise_error", "ci_lower", "ci_upper", "bin_lower", "bin_upper")


@dataclass(frozen=True)
class AnswerOptions:
    """What `dphist answer` was asked for beside a box; empty, or None, where an option was not given.

    Lists are joined by commas. `quantile`: an axis and shares, as in age=0.25,0.5. `difference`, `ratio`: the other
    box, and `share`: the part of the box, as `--where` texts. `over`: first and last period. `changes`: of each period
    against the one before, or of the two `periods`. `low`, `high`: ends of open bins, for means and sums.
    `standardise`: an axis or level that rates are standardised over. `compare`: another release. `with_chance`:
    intervals cover the chance of counts, too.
    """

    by: str = ""
    quantile: str = ""
    mean: str = ""
    sum: str = ""
    ranks: str = ""
    difference: str | None = None
    ratio: str | None = None
    share: str | None = None
    over: str = ""
    changes: bool = False
    periods: str = ""
    low: str | None = None
    high: str | None = None
    per: float = 100_000
    population: Path | None = None
    standardise: str = ""
    compare: str = ""
    pivot: str = ""
    with_chance: bool = False

    @property
    def question(self) -> str:
        """The one question that was asked; empty for the count in the box.

        Raises:
            QuestionRefused: two were asked, `--population` without `--by`, or `--with-chance` of what takes none.
        """
        from dphist_pipeline.estimates.chosen_cells import QuestionRefused

        names = ("by", "quantile", "mean", "sum", "ranks", *BOXES, "over", "changes", "compare")
        options = {name: getattr(self, name) for name in names}
        questions = [name for name in names if (options[name] is not None if name in BOXES else options[name])]
        if questions[:1] == ["by"] and {*questions[1:]} & {*BY_VALUES}:
            questions = questions[1:]
        if len(questions) > 1:
            raise QuestionRefused("", f"--{questions[0]} and --{questions[1]} are two questions; {_apart(questions)}")
        if self.ratio is not None and not self.ratio.strip():
            raise QuestionRefused(
                "", "--ratio takes the conditions of the count to divide by; for a share of all rows use --share"
            )
        if self.share is not None and not self.share.strip():
            raise QuestionRefused(
                "",
                "--share takes the conditions of the part, as in --share \"ward = 'surgery'\"; --where says within "
                "which rows, all of them without it",
            )
        if self.pivot and (questions != ["by"] or self.population or self.standardise):
            raise QuestionRefused("", "--pivot goes with --by and no other question, as in --by county --pivot ward")
        if self.standardise and (not self.population or questions not in ([], ["by"])):
            raise QuestionRefused("", "--standardise goes with --population, and with --by or no other question")
        if self.with_chance and not (set(questions).intersection(VARYING) or self.population):
            raise QuestionRefused(
                "",
                f"--with-chance is for {', '.join(f'--{name}' for name in sorted(VARYING))} and --population; other "
                "intervals cover noise alone",
            )
        if self.standardise:
            return "standardise"
        if self.population and questions != ["by"]:
            raise QuestionRefused("", "--population goes with --by, as in --by county --population people.csv")
        return questions[0] if questions else ""

    @property
    def axes(self) -> list[str]:
        """The axes or levels that it is asked by."""
        return [
            name for names in (self.by, self.pivot, self.ranks, self.standardise) if names for name in names_of(names)
        ]

    def boxes(self, box: Box) -> list[Box]:
        """All boxes that are asked about, with the axis that is summed along, if there is one."""
        along = self.mean or self.sum or (_shares(self.quantile)[0] if self.quantile else "")
        others = [box_where(text) for text in (self.difference, self.ratio, self.share) if text is not None]
        return [box, *others, {along: None}] if along else [box, *others]

    @property
    def facts(self) -> dict[str, Any]:
        """The question as JSON values."""
        facts: dict[str, Any] = {self.question: getattr(self, self.question)}
        if self.periods:
            facts["changes"] = names_of(self.periods)
        if self.by:
            facts["by"] = names_of(self.by)
        if self.pivot:
            facts["pivot"] = self.pivot
        return facts | ({"per": self.per, "population": str(self.population)} if self.population else {})


def _apart(questions: Sequence[str]) -> str:
    if questions[0] != "by":
        return "ask them one by one"
    return (
        f"--by goes with {', '.join(f'--{name}' for name in BY_VALUES)} or alone. Ask --{questions[1]} of each value, "
        "as in --where \"ward = 'surgery'\""
    )


def box_where(text: str) -> Box:
    """The cells where conditions hold; all of them without conditions."""
    from dphist_pipeline.answering.grammar import parse_where

    return parse_where(text) if text.strip() else {}


def in_options(text: str) -> str:
    """A sentence of a macro with the options of the command line in place of its arguments."""
    text = re.sub(r"\b(low|high) := '?([^\s',]+)'?", r"--\1 \2", text).replace(", --high", " --high")
    text = re.sub(r"\b(low|high) must\b", r"--\1 must", text)
    return re.sub(r"\bwith_chance\b", "--with-chance", text)


def answer_rows(publication: Publication, asked: AnswerOptions, box: Box, other: Publication | None = None) -> Rows:
    """The rows that answer a question, as JSON values.

    `other`: what is subtracted, if another release or period was asked for.

    Raises:
        QuestionRefused: the macro refuses the question.
    """
    from dphist_pipeline.estimates.chosen_cells import QuestionRefused

    try:
        answers = _by_values if asked.periods or (asked.by and asked.question in BY_VALUES) else _answer_rows
        return answers(publication, asked, box, other)
    except QuestionRefused as refused:
        raise QuestionRefused(refused.axis, in_options(refused.problem)) from None


def _answer_rows(publication: Publication, asked: AnswerOptions, box: Box, other: Publication | None) -> Rows:
    from dphist_pipeline.estimates.answers import Answer, found_in_row

    match asked.question:
        case "by" | "standardise":
            return _rows(_by_axes(publication, asked, box))
        case "quantile":
            axis, shares = _shares(asked.quantile)
            quantiles = publication.quantiles(axis, shares, box)
            return [{"q": share, **answer_as_json(quantile)} for share, quantile in zip(shares, quantiles, strict=True)]
        case "mean":
            return [answer_as_json(publication.mean(asked.mean, asked.low, asked.high, box))]
        case "sum":
            return [answer_as_json(publication.sum(asked.sum, asked.low, asked.high, box))]
        case "ranks":
            return _rows(publication.ranks(asked.ranks, box))
        case "share":
            return [answer_as_json(publication.share(box_where(asked.share or ""), box))]
        case "difference" | "ratio":
            ask, condition = getattr(publication, asked.question), getattr(asked, asked.question)
            return [answer_as_json(ask(box, box_where(condition)))]
        case "compare":
            return [answer_as_json(publication.change_since(cast("Publication", other), box))]
        case "changes":
            return _rows(publication.changes(box))
        case _:
            first, last = [*(name or None for name in names_of(asked.over)), None][:2]
            row = publication.span(first, last, box)
            # Days that were asked for need not be in a published period.
            periods = {name: row[name] for name in ("first_period", "last_period", "periods")}
            return [periods | answer_as_json(found_in_row(Answer, row))]


def _by_values(publication: Publication, asked: AnswerOptions, box: Box, other: Publication | None) -> Rows:
    """One of `BY_VALUES` for each value of the axes of `--by`."""
    match asked.question:
        case "ratio":
            return _rows(publication.ratio_by(asked.axes, box, box_where(asked.ratio or "")))
        case "mean":
            return _rows(publication.mean_by(asked.axes, asked.mean, asked.low, asked.high, box))
        case "sum":
            return _rows(publication.sum_by(asked.axes, asked.sum, asked.low, asked.high, box))
        case "share":
            return _rows(publication.share_by(asked.axes, box_where(asked.share or ""), box))
        case "compare" | "changes" if other is not None:
            return publication.changes_since(other, box, asked.axes)
        case _:
            return _rows(publication.changes(box, asked.axes))


def _by_axes(publication: Publication, asked: AnswerOptions, box: Box) -> Any:
    from dphist_pipeline.answering.asking import read_population

    by = names_of(asked.by) if asked.by else []
    if asked.population is None:
        return publication.marginal(by, box)
    people = read_population(asked.population)
    if asked.standardise:
        return publication.standardised(by, asked.standardise, people, asked.per, box)
    return publication.rate(by, people, asked.per, box)


def print_rows(
    publication: Publication,
    asked: AnswerOptions,
    rows: Rows,
    decimals: int | None = None,
    other: Publication | None = None,
) -> None:
    """Prints rows of answers; their notes stand below, by numbers, and what the marks mean.

    `other`: what was subtracted, if another release was asked for.
    """
    from dphist_pipeline.base.shown_below import commands_hide, limit_of
    from dphist_pipeline.estimates.reliability import RELIABILITY
    from dphist_pipeline.publishing.headline_figures import HeadlineFigure

    axis = _shares(asked.quantile)[0] if asked.quantile else asked.mean
    are_counts = not asked.population and asked.question in COUNTS
    # The figures of a difference, a share, a mean or a rate are no counts.
    limit = limit_of(publication.audit) if are_counts and asked.question in FIGURES else None
    numbers = [HeadlineFigure.of(row, None, limit) if "unbiased" in row else None for row in rows]
    rows = [
        {**row, "note": _note_on_unbiased(row["note"])} if number is not None and number.is_unbiased else row
        for row, number in zip(rows, numbers, strict=True)
    ]
    texts = [
        row if number is None or math.isnan(number.value) else {**row, "estimate": number.value}
        for row, number in zip(rows, numbers, strict=True)
    ]
    texts = [
        {**row, **_in_digits(publication, axis, row, are_counts, decimals)} for row in bins_in_words(publication, texts)
    ]
    texts = [
        row if number is None else {**row, **_in_words(number)} for row, number in zip(texts, numbers, strict=True)
    ]
    notes = list(dict.fromkeys(row["note"] for row in rows if row["note"]))
    # The two counts of a change are other questions, with intervals of their own.
    hidden = {
        "unbiased",
        "noise_error",
        "basis",
        "capped",
        "chance",
        "reliability",
        "first_estimate",
        "second_estimate",
        "part_estimate",
        "whole_estimate",
    }
    hidden |= {"ci_lower", "ci_upper", "bin_lower", "bin_upper"} if asked.quantile else set()  # they stand in words
    # A note that all rows have stands below, without a number in each of them.
    shared_notes = notes[:1] if len(notes) == 1 and all(row["note"] for row in rows) else []
    hidden |= {"note"} if shared_notes or not notes else set()
    hidden |= {name for name in (rows[0] if rows else ()) if name.endswith(("period_start", "period_end"))}
    # The line below names both sides, which are of one period.
    hidden |= set() if other is None else {"first_period", "second_period"}
    hidden -= set(asked.axes)
    numbered = [] if shared_notes else notes
    cuts, remarks = _cuts([told_once(row.get("capped") or "") for row in rows], len(numbered))
    if cuts:
        texts = [{**row, "capped": cut} for row, cut in zip(texts, cuts, strict=True)]
        hidden -= {"capped"}
    header = [name for name in (texts[0] if rows else {}) if name not in hidden]
    lines = [tuple(cell_text(row, name, notes) + mark_of(row, name) for name in header) for row in texts]
    keys = next((place for place, name in enumerate(header) if name == "estimate"), 1)
    head = "rate" if asked.population else HEADS.get(asked.question) or _head(numbers)
    print_table([head if name == "estimate" else name for name in header], lines, keys)
    one_period = bool(asked.periods) or asked.question not in ("changes", "over")
    print_which(publication, one_period, other)
    words = {row.get("reliability") for row in rows}
    for word in (word for word in MARKS if word in words):
        out.print(f"{MARKS[word].strip()} {word}: {RELIABILITY.legend[word]}")
    for note in shared_notes:
        out.print(escape(_as_sentence(note)))
    for number, note in enumerate(numbered, 1):
        out.print(f"({number}) {escape(note)}")
    if limit is not None and any(number is not None and number.hides for number in numbers):
        remarks.append(commands_hide(limit))
    if asked.question in ("changes", "over", "compare") and not any(row.get("capped") for row in rows):
        remarks += _cap_untold(publication)
    remarks += dict.fromkeys(_as_sentence(row["chance"]) for row in rows if row.get("chance"))
    for remark in remarks:
        out.print(escape(in_options(remark)))


def _in_words(number: HeadlineFigure) -> dict[str, str]:
    """What is told in words, or not at all, in place of the numbers of a row; a known one has no interval."""
    if number.is_known:
        return {"ci_lower": "", "ci_upper": ""}
    if number.limit is None or not number.hides:
        return {}
    hidden = {"estimate": number.figure(number.value)} if number.value < number.limit else {}
    return {"ci_lower": "", "ci_upper": "", **hidden}


def _cuts(sentences: Sequence[str], notes: int) -> tuple[list[str], list[str]]:
    """What a column says to each row of the rows that the bound cut, and what stands below; no column if all are alike.

    Each rate and ratio is moved by itself: the words that they share stand below, the others in the column. Where they
    share none, the column has numbers of whole sentences, after the `notes` that stand below already. Where no period
    has a cut that can be seen, one sentence says so of all.
    """
    distinct = list(dict.fromkeys(filter(None, sentences)))
    if len(set(sentences)) < 2:
        return [], [_as_sentence(one) for one in distinct]
    matches = [match for match in map(MOVED.fullmatch, sentences) if match]
    if len(matches) == len(sentences) and len({match[1] for match in matches}) == 1:
        return [match[2] for match in matches], [_as_sentence(f"{matches[0][1]} what the column capped says")]
    uncut = [match for match in map(UNCUT.fullmatch, sentences) if match]
    if len(uncut) == len(sentences) and len({match[1] for match in uncut}) == 1:
        most = max(int(number.replace(",", "")) for match in uncut for number in match.groups()[1:])
        return [], [_as_sentence(f"in each of these periods {uncut[0][1]}; at most {most:,} in one (95 %)")]
    numbers = {one: f"({number})" for number, one in enumerate(distinct, notes + 1)}
    below = [f"{number} {_as_sentence(one)}" for one, number in numbers.items()]
    return [numbers.get(sentence, "") for sentence in sentences], below


def told_once(sentence: str) -> str:
    """What the bound cut in two periods or releases, with what is said of both said once."""
    twice = TWICE.fullmatch(sentence)
    if twice is None:
        return sentence
    first, seen, cut, rest, second, other_cut = twice.groups()
    return f"{seen}, the bound cut {cut} {first} and {other_cut} in {second}; {rest}"


def _cap_untold(publication: Publication) -> list[str]:
    """That the bound kept rows out of counts of several periods, where no macro tells how many."""
    from dphist_pipeline.estimates import notes
    from dphist_pipeline.estimates.row_quality import bound_drops_rows
    from dphist_pipeline.publishing.published_files import PublishedFolder

    audit = publication.audit
    if not bound_drops_rows(audit):
        return []
    if PublishedFolder(publication.folder).quality.exists():
        return [
            f"Biased by the cap; of each period, dphist quality {audit['release']} tells how many rows the bound cut."
        ]
    return [_as_sentence(notes.CAP_UNKNOWN)]


def _as_sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _note_on_unbiased(note: str | None) -> str:
    """A note without what it says of the estimate: beside the unbiased sum, that would be about a number not shown."""
    from dphist_pipeline.estimates import notes

    for unsaid in (notes.SMOOTHED, notes.BELOW):
        note = (note or "").removesuffix(unsaid).removesuffix("; ")
    return note or ""


def _head(numbers: Sequence[HeadlineFigure | None]) -> str:
    """The head of the numbers that are told first: sums by unbiased estimates, single cells by the mechanism's."""
    unbiased = {number is not None and number.is_unbiased for number in numbers}
    return "estimate" if unbiased <= {False} else "unbiased" if unbiased == {True} else "number"


def print_which(publication: Publication, one_period: bool = True, other: Publication | None = None) -> None:
    """Names the release below a table of answers, with period and revision where they are of one.

    `other`: what was subtracted, if another release was asked for.
    """
    sides = [side.audit for side in (publication, other) if side is not None]
    of = [
        f", period {side['period']}, revision {side['revision']}" if one_period else ", its periods" for side in sides
    ]
    titles = [f"[bold]{escape(side['release'])}[/]{which}" for side, which in zip(sides, of, strict=True)]
    out.print(", less ".join(titles))


def print_rows_as_json(facts: Mapping[str, Any], rows: Rows) -> None:
    """Prints rows of answers as JSON: null for an infinite number, days as texts."""
    print_json({**facts, "rows": [{name: _as_json(value) for name, value in row.items()} for row in rows]})


def _as_json(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return None if isinstance(value, float) and math.isinf(value) else value


def answer_as_json(answer: Answer | Quantile) -> dict[str, Any]:
    """An answer as JSON values: null for nan and for an empty note."""
    facts = asdict(answer) | {"note": answer.note or None}
    facts = {name: fact for name, fact in facts.items() if fact != "" or name not in ("capped", "chance")}
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in facts.items()}


def _rows(table: Any) -> Rows:
    rows: Rows = table.to_pylist()
    return rows


def names_of(listed: str) -> list[str]:
    """The names in a list that commas join; spaces around a name do not count."""
    return [name.strip() for name in listed.split(",")]


def _shares(option: str) -> tuple[str, list[float]]:
    from dphist_pipeline.estimates.chosen_cells import QuestionRefused

    name, _, shares_text = option.partition("=")
    try:
        return name.strip(), [float(share) for share in shares_text.split(",")]
    except ValueError:
        raise QuestionRefused(
            "", f"--quantile takes an axis and shares, as in age=0.25,0.5, not {option!r:.60}"
        ) from None


def bins_in_words(publication: Publication, rows: Sequence[Mapping[str, Any]]) -> Rows:
    """The same rows, with one column in words for the two ends of every bin."""
    from dphist_pipeline.base.domain import BinnedAxis
    from dphist_pipeline.estimates.chosen_cells import end_of
    from dphist_pipeline.publishing.axis_labels import ReaderAxis

    closed = publication.audit.get("model") == "local"
    binned = {f"{axis.name}_lower": axis for axis in publication.domain.axes if isinstance(axis, BinnedAxis)}

    def in_words(row: Mapping[str, Any], axis: BinnedAxis) -> str:
        lower, upper = (row[f"{axis.name}_{end}"] for end in ("lower", "upper"))
        reader = ReaderAxis(axis, closed)
        if lower is None and upper is None:
            return reader.range_in_words(math.nan, math.nan)
        return reader.range_in_words(end_of(axis, lower, -math.inf), end_of(axis, upper, math.inf), separated=True)

    left_out = {f"{axis.name}_upper" for axis in binned.values()}
    return [
        {
            (binned[name].name if name in binned else name): in_words(row, binned[name]) if name in binned else value
            for name, value in row.items()
            if name not in left_out
        }
        for row in rows
    ]


def _in_digits(
    publication: Publication, name: str, row: Mapping[str, Any], is_count: bool, decimals: int | None
) -> dict[str, str]:
    """The numbers of a row as texts with the decimals that its noise justifies; days on a calendar axis."""
    from dphist_pipeline.base.domain import BinnedAxis, CalendarAxis
    from dphist_pipeline.publishing.formatting import in_decimals
    from dphist_pipeline.publishing.headline_figures import HeadlineFigure

    axis = next((axis for axis in publication.domain.axes if axis.name == name), None)
    is_known = is_count or row.get("ci_lower") is not None
    places = HeadlineFigure.decimals_justified(row) if decimals is None and is_known else decimals
    digits = {}
    for column in IN_UNITS:
        value = row.get(column)
        if value is None:
            continue
        if isinstance(axis, BinnedAxis) and (isinstance(axis, CalendarAxis) or column.startswith("bin_")):
            digits[column] = axis.written(value)
        else:
            digits[column] = f"{value:,.4g}" if places is None else in_decimals(value, places)
    return digits


def mark_of(row: Mapping[str, Any], column: str) -> str:
    """The mark of reliability after an estimate; empty after other columns."""
    return MARKS.get(row.get("reliability") or "", "") if column == "estimate" else ""


def cell_text(row: Mapping[str, Any], column: str, notes: list[str]) -> str:
    """The text of a column in a row; its note is shown as its number among all notes, from 1."""
    value = row[column]
    if column == "note":
        return f"({notes.index(value) + 1})" if value else ""
    if isinstance(value, str):
        return value
    if value is None:
        return "" if column in (*IN_UNITS, "population") or column.startswith("rank_") else _text_of_null(row, column)
    if column in IN_UNITS or column in ("cells", "first_estimate", "second_estimate"):
        return f"{round(value):,}" if math.isfinite(value) else str(value)
    return f"{value:,}".removesuffix(".0") if isinstance(value, float) else str(value)


def _text_of_null(row: Mapping[str, Any], column: str) -> str:
    """The text of a column that is null: `other`, once for an axis; empty for open ends and labels."""
    stem, _, part = column.rpartition("_")
    open_end = part == "lower" and row.get(f"{stem}_upper") is not None
    second = (part == "upper" and f"{stem}_lower" in row) or (part == "label" and stem in row)
    return "" if open_end or second else "other"
