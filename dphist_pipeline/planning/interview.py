"""The questions of `dphist new` at a terminal: a spec from decisions that a person makes one by one.

Each question says why it is asked, a public rule of thumb, and what an answer means. An answer is checked at once, by
the rules of `dphist check`. Nothing here opens a record: questions and defaults follow from header and types alone.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any, get_args

from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.languages.texts import LANGUAGES
from dphist_pipeline.ledger.amounts import as_text
from dphist_pipeline.planning import _interview_texts as texts
from dphist_pipeline.planning._public_lists import IN_WORDS, LISTS, USUAL_NAMES, list_for, list_near
from dphist_pipeline.planning.columns import Column, Layout
from dphist_pipeline.planning.drafting import as_words, comment_text, name_field, outcome_of, roles_of, source_lines
from dphist_pipeline.planning.expected_quality import bought_for, rows_for_quality, small_share
from dphist_pipeline.planning.plain_texts import odds
from dphist_pipeline.planning.serving import Serves, Serving, mechanism_for
from dphist_pipeline.planning.unit_names import doubt_of_other_rows, label_of, names_person, unit_doubt
from dphist_pipeline.reading import UTF_8
from dphist_pipeline.releasing.account_runway import AccountRunway
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec import fields
from dphist_pipeline.spec.fields import parse_epsilon
from dphist_pipeline.spec.loading import attributes_in, folder_of_spec
from dphist_pipeline.spec.mistakes import SpecError
from dphist_pipeline.spec.sources import EVERY_ROW, ISO
from dphist_pipeline.tidying import STEPS

NONE, LEFT_OUT, EXACT, TIDY, BACK, UNKNOWN = "none", "-", "exact", "tidy", "back", "unknown"
YES, NO = "yes", "no"
LIKELY_AXES = 3  # as the rule of thumb beside the question
WEEKLY_EPSILON = "0.1"  # a year of weeks takes 53 times as much
USUAL_CAP, USUAL_EPSILON, USUAL_ROWS_SEEN = 3, "0.5", 10
TRIED_CAPS, TRIED_EPSILONS = (1, 3, 10), ("0.1", "0.5", "1", "2")
QUALITY_SHARE = Fraction(1, 20)
MOST_PROBLEMS = 3
LONGEST_CAP, LONGEST_ROWS = 9, 15  # digits
_WHOLE = re.compile(r"-?\d+", re.ASCII)
LENGTHS = ("week", "month", "quarter", "year")
# An axis is known by the question.
_PLACE = re.compile(r"^attributes\.(axes\[\d+\]\.?)?")
_BINS = re.compile(r"(\S+)\s+(\S+)\s+(\S+)")
_EDGES = re.compile(r"-?\d+(\.\d+)?(\s+-?\d+(\.\d+)?){2,}", re.ASCII)
# A number of each row by itself: no axis that anybody needs.
_RUNNING = re.compile(
    r"(^|_)(nr|no|nummer|number|num|lfd|lfdnr|lfdn|seq|sequence|index|zeile|row|barcode|signatur)(_|$)"
)

# A date as people write it, or its pattern: the signs of a format by the texts that may stand for them.
_DATE = re.compile(r"([A-Za-z]+|\d+)([./-])([A-Za-z]+|\d+)\2([A-Za-z]+|\d+)", re.ASCII)
_DATE_PARTS = {
    "%Y": re.compile(r"[yja]{4}|\d{4}", re.I),
    "%m": re.compile(r"m{1,2}|0?[1-9]|1[0-2]", re.I),
    "%d": re.compile(r"[dtjg]{1,2}|0?[1-9]|[12]\d|3[01]", re.I),
}
_DATE_ORDERS = ("%d%m%Y", "%Y%m%d", "%m%d%Y")

Answers = Mapping[str, object]
Talk = Generator["Question", str, None]
# The mechanism that is written as on a command line, with its settings.
Advise = Callable[[str], tuple[str, dict[str, object]]]


@dataclass(frozen=True)
class Question:
    """A question to the person at the terminal.

    Attributes:
        because: lines on why, with a rule of thumb, and on what an answer means.
        default: what an empty answer stands for; empty where an answer is needed.
        remarks: what follows from the answers so far, a line each.
        problem: why the last answer was not taken; empty at first.
    """

    asks: str
    because: tuple[str, ...]
    default: str = ""
    remarks: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Decided:
    """What the answers make.

    Attributes:
        spec: the same, checked.
        total: epsilon of the account that pays for a year of periods, or for the one table.
        others: for each axis, which values fall to `other`.
    """

    text: str
    spec: ReleaseSpec
    total: Fraction
    others: tuple[str, ...]


def interview(
    release: str, output: Path, named: str, layout: Layout, advise: Advise, mechanism: str = ""
) -> Generator[Question, str, Decided]:
    """Asks for all that a spec needs; is sent one answer for each question, or `back` for the question before.

    The mechanism is written as on a command line; without one, a question asks what shall be served.

    Raises:
        Refused: a spec cannot name the source, or no column can be used.
    """

    def start() -> Generator[Question, str, Decided]:
        return _questions(_Interview(release, output, named, layout, advise), mechanism)

    answers: list[str] = []
    talk = start()
    question = next(talk)
    while True:
        answer = yield question
        if answer.strip() == BACK:
            # The same answers make the same questions again.
            answers, talk = answers[:-1], start()
            question = next(talk)
            for earlier_answer in answers:
                question = talk.send(earlier_answer)
            continue
        try:
            question = talk.send(answer)
        except StopIteration as end:
            decided: Decided = end.value
            return decided
        if not question.problem:
            answers.append(answer)


def _questions(talk: _Interview, mechanism: str) -> Generator[Question, str, Decided]:
    yield from talk.ask_unit()
    yield from talk.ask_period()
    yield from talk.ask_axes()
    yield from talk.ask_outcome()
    yield from talk.ask_mechanism(mechanism)
    yield from talk.ask_cap()
    yield from talk.ask_account()
    yield from talk.ask_epsilon()
    yield from talk.ask_rows()
    yield from talk.ask_spellings()
    yield from talk.ask_words()
    return talk.decided()


@dataclass
class _Interview:
    release: str
    output: Path
    named: str
    layout: Layout
    advise: Advise
    answers: dict[str, object] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    serving: Serving | None = None

    def __post_init__(self) -> None:
        source_fields = attributes_in("\n".join(["attributes:", *source_lines(self.output, self.named, self.layout)]))
        self.answers |= {"title": "", "neighbours": "add_remove"}
        self.answers |= {name: value for name, value in source_fields.items() if value != fields.OPEN}
        self.roles = roles_of(self.layout)
        self.usable = [
            column
            for column in self.layout.columns
            if column in (*self.roles.ids, *self.roles.codes, *self.roles.dates, *self.roles.others)
        ]
        if not self.usable:
            raise texts.nothing_to_publish(self.named)

    def ask_unit(self) -> Talk:
        columns = "   ".join(f"{number} {comment_text(column.name)}" for number, column in enumerate(self.usable, 1))
        # Only a name is a public reason. Of a plain number nobody knows whether it is of a person or of an event.
        people = [column for column in self.roles.ids if names_person(column.name)]
        likely = self._number_of(people[0]) if people else ""
        question = Question(texts.UNIT, (f"columns: {columns}", *texts.WHY_UNIT), likely)

        def read(answer: str) -> Answers:
            if answer == EVERY_ROW:
                return {"privacy_unit": EVERY_ROW}
            names = [column.name for column in self._columns(answer)]
            return {"privacy_unit": names[0] if len(names) == 1 else names}

        yield from self._ask(question, read)
        self.remarks.append(f"Protected: {texts.unit_in_words(self.answers['privacy_unit'])}.")
        doubt = unit_doubt(list(map(str, self._units)), [column.name for column in self.usable])
        if doubt:
            self.remarks.append(f"! {doubt} `back` goes to the question again.")

    def ask_period(self) -> Talk:
        dates = [column for column in self.roles.dates if column.name not in self._units]
        free = [column for column in self.usable if column.name not in self._units and column.kind in ("date", "text")]
        if not free:
            self.answers["period"] = NONE
            return
        columns = "   ".join(f"{self._number_of(column)} {comment_text(column.name)}" for column in free)
        default = self._number_of(dates[0]) if dates else NONE

        def read_column(answer: str) -> Answers:
            if answer == NONE:
                return {"period": NONE}
            column = self._one_of(answer, free)
            return {"period": "month", "period_column": column.name, "time_zone": "UTC"}

        yield from self._ask(Question(texts.PERIOD, (f"columns: {columns}", *texts.WHY_PERIOD), default), read_column)
        if self.answers["period"] == NONE:
            return
        length = Question(f"How often is a table published: {', '.join(LENGTHS)}?", texts.WHY_LENGTH, "month")
        yield from self._ask(length, lambda answer: {"period": answer})
        column = next(column for column in free if column.name == self.answers["period_column"])
        if column.kind == "date":
            return
        # No default: a wrong one leaves every row out, and the period is paid for.
        explanation = texts.why_format(of_spreadsheet=self.layout.delimiter == ";")
        question = Question(f"How are dates written in {comment_text(column.name)}?", explanation)
        yield from self._ask(question, _date_format)

    def ask_axes(self) -> Talk:
        while not self.answers.get("axes"):
            columns = yield from self._ask_columns()
            for column in columns:
                yield from self._ask_axis(column)
            if not self.answers.get("axes"):
                self.remarks.append("No axis is left: a table needs at least one.")
        doubt = doubt_of_other_rows(list(map(str, self._units)), list(map(str, self._axis_columns)))
        if doubt:
            self.remarks.append(f"! {doubt} `back` goes to the question again.")
        if self.layout.delimiter == ";" and not self.layout.says_encoding:
            yield from self._ask(
                Question(texts.ENCODING, texts.WHY_ENCODING, UTF_8), lambda answer: {"csv_encoding": answer}
            )
        if self.layout.delimiter == ";" and any({"start", "edges"} & {*axis} for axis in self._axes):
            yield from self._ask(
                Question(texts.DECIMALS, texts.WHY_DECIMALS), lambda answer: {"decimal_comma": _is_yes(answer)}
            )
        domain = self._spec({}).domain
        shape = " × ".join(f"{axis.name} ({axis.size:,})" for axis in domain.axes)
        self.remarks.append(f"Cells: {domain.cells:,} = {shape}, each published, also where it is empty.")

    def _ask_columns(self) -> Generator[Question, str, list[Column]]:
        used = {*self._units, self.answers.get("period_column")}
        free = [column for column in self.usable if column.name not in used]
        if not free:
            raise texts.nothing_to_publish(self.named)
        others = [column for column in self.roles.others if column in free]
        likely = [column for column in others if not _RUNNING.search(as_words(column))][:LIKELY_AXES]
        columns = "   ".join(f"{self._number_of(column)} {comment_text(column.name)}" for column in free)
        question = Question(
            texts.COLUMNS, (f"columns: {columns}", *texts.WHY_COLUMNS), ", ".join(map(self._number_of, likely))
        )
        columns_chosen: list[Column] = []

        def read(answer: str) -> Answers:
            columns_chosen[:] = self._columns(answer, free)
            return {}

        yield from self._ask(question, read)
        return columns_chosen

    def _ask_axis(self, column: Column) -> Talk:
        fitting, near = list_for(as_words(column), column.kind, bool(column.type)), list_near(as_words(column))
        offered = (f"`{name}` {IN_WORDS[name]}" for name in LISTS)
        forms = texts.NUMBERS_FIRST if column.kind == "number" or near == "ages" else texts.TEXTS_FIRST
        explanation: tuple[str, ...] = (texts.WHY_AXIS, *forms, f"  public lists: {'; '.join(offered)}")
        if near and not fitting:
            explanation = (*explanation, texts.list_may_fit(near, IN_WORDS[near]))

        def read(answer: str) -> Answers:
            if answer == LEFT_OUT:
                return {}
            return {"axes": [*self._axes, self._named(column, _axis(answer, column), answer)]}

        axes_before = len(self._axes)
        yield from self._ask(Question(f"Which values has {comment_text(column.name)}?", explanation, fitting), read)
        if len(self._axes) > axes_before:
            yield from self._ask_bands(column)
            yield from self._ask_format(column)
            yield from self._ask_name(column)

    def _ask_bands(self, column: Column) -> Talk:
        """Whether bands are text in the file, or numbers were meant, whose every row would be `other`."""
        *axes, axis = self._axes
        if "bands" not in axis:
            return
        first = next(iter(axis["bands"]))

        def read(answer: str) -> Answers:
            if _is_yes(answer):
                return {}
            edges = list(axis["bands"].values())
            if len(edges) < 2:
                raise ValueError("must be yes: a single lower end makes no bins of numbers")
            bins = {"edges": edges, "below": True, "above": True}
            return {"axes": [*axes, {**{n: v for n, v in axis.items() if n != "bands"}, **bins}]}

        asks = f"Does the file itself write {comment_text(first)} in {comment_text(column.name)}? yes or no"
        yield from self._ask(Question(asks, texts.why_bands(comment_text(first))), read)

    def _ask_format(self, column: Column) -> Talk:
        """How the dates of a calendar axis over text are written, unless the period's column said so."""
        *axes, axis = self._axes
        if "calendar" not in axis or column.kind != "text":
            return
        if column.name == self.answers.get("period_column"):
            self.answers["axes"] = [*axes, {**axis, "format": self.answers["period_format"]}]
            return
        explanation = texts.why_format(of_spreadsheet=self.layout.delimiter == ";")
        question = Question(f"How are dates written in {comment_text(column.name)}?", explanation)
        yield from self._ask(question, lambda answer: {"axes": [*axes, {**axis, "format": _format_named(answer)}]})

    def _ask_name(self, column: Column) -> Talk:
        """What the published column of an axis is called, where the column's own name gives none."""
        *axes, axis = self._axes
        if name_field(column.name) != [f"name: {fields.OPEN}"] or "name" not in axis:
            return
        explanation = texts.why_name(comment_text(column.name))
        question = Question(
            f"What is {comment_text(column.name)} called in published files?", explanation, axis["name"]
        )
        yield from self._ask(question, lambda answer: {"axes": [*axes, {**axis, "name": answer}]})

    def ask_outcome(self) -> Talk:
        by_row = self.answers["privacy_unit"] == EVERY_ROW
        if by_row:
            self.answers["quality"] = {"share": str(QUALITY_SHARE)}
            return
        names = [axis.name for axis in self._spec({}).domain.axes]
        likely = outcome_of([column for column in self.roles.others if column.name in self._axis_columns])
        default = likely if likely in names else NONE

        numbers = [
            self._number_of(column) for axis in self._axes for column in self.usable if column.name == axis["column"]
        ]
        numbered = dict(zip(numbers, names, strict=True))
        axis_names = "   ".join(f"{number} {name}" for number, name in numbered.items())

        def read(answer: str) -> Answers:
            by = [] if answer == NONE else [numbered.get(part, part) for part in _listed(answer)]
            for part in by:
                if part not in names:
                    raise ValueError(
                        f"{comment_text(part)} is no axis of the list; give its number or its name: {axis_names}"
                    )
            return {"quality": {"share": str(QUALITY_SHARE), "rows": USUAL_ROWS_SEEN, "by": by}}

        question = Question(texts.OUTCOME, (f"axes: {axis_names}", *texts.WHY_OUTCOME), default)
        yield from self._ask(question, read)

    def ask_mechanism(self, mechanism: str) -> Talk:
        if mechanism:
            problems = self._problems(answered := self._mechanism(mechanism))
            if problems:
                raise texts.mechanism_refused(mechanism, problems)
            self.answers |= answered
            return
        axes = len(self._spec({}).domain.shape)
        serving: list[Serving] = []

        def read(answer: str) -> Answers:
            if answer not in get_args(Serves):
                raise ValueError(f"is one of {', '.join(get_args(Serves))}")
            serving[:] = [mechanism_for(answer, axes)]  # type: ignore[arg-type]
            return self._mechanism(serving[0].written)

        yield from self._ask(Question(texts.SERVES, texts.WHY_SERVES, "cells"), read)
        self._served_by(serving[0])

    def ask_cap(self) -> Talk:
        if self.answers["privacy_unit"] == EVERY_ROW:
            return

        def read(answer: str) -> Answers:
            if not answer.isascii() or not answer.isdigit() or len(answer) > LONGEST_CAP:
                raise ValueError("is a whole number from 1")
            quality: Any = self.answers["quality"]
            return {
                "max_rows_per_unit": int(answer),
                "quality": {**quality, "rows": max(USUAL_ROWS_SEEN, 2 * int(answer))},
            }

        means = "; ".join(f"{cap}: ± {_within(parse_epsilon(USUAL_EPSILON), cap):,}" for cap in TRIED_CAPS)
        explanation = (
            *texts.WHY_CAP,
            f"At epsilon {USUAL_EPSILON}, a cell is told within (95 %, by plain noise) {means}",
        )
        yield from self._ask(
            Question(f"How many rows of one unit count{self._each}?", explanation, str(USUAL_CAP)), read
        )

    def ask_account(self) -> Talk:
        yield from self._ask(
            Question(texts.ACCOUNT, texts.WHY_ACCOUNT, self.release), lambda answer: {"account": answer}
        )

    def ask_epsilon(self) -> Talk:
        hidden = "is in the source" if self.answers["neighbours"] == "add_remove" else "has one value or another"
        cap, tried = self._spec({}).sensitivity, [parse_epsilon(text) for text in TRIED_EPSILONS]
        means = (
            f"  {as_text(one)}: a cell is told within ± {_within(one, cap):,}; odds that a unit {hidden} change "
            f"{odds(one)}{self._year(one)}"
            for one in tried
        )
        explanation = (*texts.WHY_EPSILON, "What it means, by plain noise in 95 of 100 cells:", *means)

        def read(answer: str) -> Answers:
            parse_epsilon(answer)
            return {"epsilon": answer}

        asks = f"How much epsilon{self._each or ' for the table'}?"
        default = WEEKLY_EPSILON if self.answers["period"] == "week" else USUAL_EPSILON
        yield from self._ask(Question(asks, explanation, default), read)

    def ask_rows(self) -> Talk:
        """Whether a quality table is bought, by the rule of `check`: of few rows it tells nothing."""
        per = "release" if self.answers["period"] == NONE else str(self.answers["period"])
        spec = self._spec({})
        assert spec.quality is not None
        rows_needed, bought = rows_for_quality(spec), [True]
        guessed: list[int] = []

        def read(answer: str) -> Answers:
            guessed.clear()
            if answer == UNKNOWN:
                # An outcome was named to be told of; `check` says from how many rows on it is.
                bought[:] = [bool(spec.quality and spec.quality.by)]
            elif not answer.isascii() or not answer.isdigit() or len(answer) > LONGEST_ROWS:
                raise ValueError(f"is a whole number, or `{UNKNOWN}`")
            else:
                guessed.append(int(answer))
                bought[:] = [not small_share(spec, guessed[0], per, expected=True)]
            return {}

        yield from self._ask(
            Question(texts.rows_asked(per), texts.why_rows(rows_needed or 0, bought_for(spec), per), UNKNOWN), read
        )
        if not bought[0]:
            del self.answers["quality"]
            self.remarks.append(texts.without_quality(rows_needed or 0, per))
        if guessed:
            self._serve_guessed(guessed[0])

    def _serve_guessed(self, rows: int) -> None:
        """Where a rule named the mechanism, it does so again, now that a number of rows is guessed."""
        if self.serving is None:
            return
        spec = self._spec({})
        known = float(rows * spec.epsilon / spec.sensitivity / spec.domain.cells)
        serving = mechanism_for(self.serving.serves, len(spec.domain.shape), known)
        if serving.written != self.serving.written:
            self.answers.pop("settings", None)
            self.answers |= self._mechanism(serving.written)
            self._served_by(serving)

    def _served_by(self, serving: Serving) -> None:
        self.serving = serving
        self.remarks.append(f"Mechanism: `{serving.written}`. {serving.because}.")

    def ask_spellings(self) -> Talk:
        for place, axis in enumerate(self._axes):
            if "values" not in axis or axis["values"] == LISTS["yes-no"]["values"]:
                continue

            def read(answer: str, place: int = place) -> Answers:
                axes = self._axes
                axes[place] = {**axes[place], **_spellings(answer)}
                return {"axes": axes}

            asks = f"Which other spellings count in {comment_text(axis['column'])}?"
            yield from self._ask(Question(asks, texts.WHY_SPELLINGS, TIDY), read)

    def ask_words(self) -> Talk:
        title = self.release.replace("_", " ").capitalize()
        yield from self._ask(Question(texts.TITLE, texts.WHY_TITLE, title), lambda answer: {"title": answer})
        question = Question(texts.COUNTED, texts.WHY_COUNTED, "records")
        # Each default is what an unset field says.
        yield from self._ask(question, lambda answer: {} if answer == "records" else {"counted": answer})
        yield from self._ask_unit_label()
        for place, axis in enumerate(self._axes):
            name, column = axis.get("name", axis["column"]), axis["column"]

            def read(answer: str, place: int = place, name: str = name) -> Answers:
                axes = self._axes
                axes[place] = {**axes[place], **({} if answer == name else {"label": answer})}
                return {"axes": axes}

            asks = f"What do readers call the axis {comment_text(name)}?"
            yield from self._ask(Question(asks, texts.WHY_LABEL, " ".join(column.replace("_", " ").split())), read)
        question = Question(f"In which language are cards and pages: {', '.join(LANGUAGES)}?", texts.WHY_LANGUAGE, "en")
        # English is the default, and stays unsaid: the office may have another one.
        yield from self._ask(question, lambda answer: {} if answer == "en" else {"language": answer})

    def _ask_unit_label(self) -> Talk:
        if self.answers["privacy_unit"] == EVERY_ROW:
            return
        units = list(map(str, self._units))
        called = label_of(next(filter(names_person, units), units[0]))
        question = Question(texts.UNIT_LABEL, texts.WHY_UNIT_LABEL, called)
        yield from self._ask(question, lambda answer: {} if [answer] == units else {"unit_label": answer})

    def decided(self) -> Decided:
        """The spec that the answers make."""
        spec = self._spec({})
        text = texts.spec_text(self.release, self.layout.file.name, self.answers, told(spec), self.serving)
        checked_spec = ReleaseSpec.of_fields(attributes_in(text), folder_of_spec(self.output))
        assert checked_spec.digest == spec.digest, "the text says what was answered"
        total = spec.epsilon * AccountRunway.MOST_IN_A_YEAR.get(spec.period, 1)
        return Decided(text, spec, total, tuple(map(texts.other_in_words, spec.domain.axes)))

    def _ask(self, question: Question, read: Callable[[str], Answers]) -> Talk:
        """Asks until an answer is one that `check` would take."""
        question = replace(question, remarks=tuple(self.remarks))
        self.remarks.clear()
        while True:
            answer = (yield question).strip() or question.default
            problem = "needs an answer"
            if answer:
                try:
                    value = read(answer)
                    problem = self._problems(value)
                except (ValueError, DphistError, csv.Error) as error:
                    problem = str(error)
            if not problem:
                self.answers |= value
                return
            question = replace(question, remarks=(), problem=problem)

    def _problems(self, answer: Answers) -> str:
        """What `check` would say of an answer beside those that were taken; empty if it takes it."""
        try:
            self._spec(answer)
        except SpecError as error:
            problems = [f"{_PLACE.sub('', place)}: {problem}".removeprefix(": ") for place, problem in error.problems]
            return "; ".join(problems[:MOST_PROBLEMS])
        return ""

    def _spec(self, answer: Answers) -> ReleaseSpec:
        """The spec of the answers so far, with stand-ins for what was not asked yet."""
        stand_ins: dict[str, object] = {"release": self.release}
        unit = answer.get("privacy_unit", self.answers.get("privacy_unit", self.usable[0].name))
        stand_ins |= {"privacy_unit": unit, "epsilon": USUAL_EPSILON}
        stand_ins |= {} if unit == EVERY_ROW else {"max_rows_per_unit": 1}
        stand_ins |= {"account": "account", "mechanism": "geometric", "axes": [{"column": "x", "values": ["a"]}]}
        return ReleaseSpec.of_fields({**stand_ins, **self.answers, **answer}, folder_of_spec(self.output))

    def _mechanism(self, mechanism: str) -> dict[str, object]:
        name, settings = self.advise(mechanism)
        values: dict[str, object] = {"mechanism": name, "settings": settings} if settings else {"mechanism": name}
        return values | ({"tables": {"all": min(2, len(self._axis_columns))}} if name == "tables" else {})

    def _named(self, column: Column, values: Mapping[str, object], answer: str) -> dict[str, object]:
        """An axis with its column, and the name of its published one where that is another."""
        names = [axis.get("name", axis["column"]) for axis in self._axes]
        name = self._published_name(column, answer, names)
        return {"column": column.name, **name, **values, "other": True}

    def _published_name(self, column: Column, answer: str, others: Sequence[str]) -> dict[str, str]:
        """The field `name` of an axis, where the column's own name cannot be published or is taken."""
        lines = name_field(column.name)
        name = lines[0].removeprefix("name: ") if lines else column.name
        suggestion = fields.suggestion(f"{column.name}_value") or f"axis_{self._number_of(column)}"
        name = (
            USUAL_NAMES.get(answer) or USUAL_NAMES.get(list_near(as_words(column)), suggestion)
            if name == fields.OPEN
            else name
        )
        name = f"{name}_{self._number_of(column)}" if name in others else name
        return {} if name == column.name else {"name": name}

    def _number_of(self, column: Column) -> str:
        return str(self.usable.index(column) + 1)

    def _columns(self, answer: str, among: Sequence[Column] | None = None) -> list[Column]:
        """The columns that an answer names, by number or by name, with commas between."""
        columns = [self._one_of(part, self.usable if among is None else among) for part in _listed(answer)]
        if len(set(columns)) < len(columns):
            raise ValueError("names a column twice; name each once")
        return columns

    def _one_of(self, part: str, among: Sequence[Column]) -> Column:
        by_name = [column for column in among if column.name == part]
        by_number = [column for column in among if self._number_of(column) == part]
        if not by_name and not by_number:
            raise ValueError(f"{comment_text(part)} is no column of the list; give its number or its name")
        return (by_number or by_name)[0]

    def _year(self, epsilon: Fraction) -> str:
        """What a year of periods costs at an epsilon each; empty for one table."""
        releases = AccountRunway.MOST_IN_A_YEAR.get(str(self.answers["period"]), 1)
        return f"; a year of {self.answers['period']}s {as_text(epsilon * releases)}" if releases > 1 else ""

    @property
    def _units(self) -> list[object]:
        unit = self.answers.get("privacy_unit", [])
        return unit if isinstance(unit, list) else [unit]

    @property
    def _axes(self) -> list[dict[str, Any]]:
        axes: Any = self.answers.get("axes", [])
        return list(axes)

    @property
    def _axis_columns(self) -> list[object]:
        return [axis["column"] for axis in self._axes]

    @property
    def _each(self) -> str:
        return "" if self.answers["period"] == NONE else f" in a {self.answers['period']}"


def told(spec: ReleaseSpec) -> str:
    """How near a cell is told, in a few words."""
    within = noise_law(spec.sensitivity / spec.mechanism_epsilon).half_width_of_sum(1)
    return f"a cell is told within ± {within:,} (95 %, by plain noise)"


def _within(epsilon: Fraction, sensitivity: int) -> int:
    """Half the width of the 95 % interval of a cell by plain noise, beside a quality table, in records."""
    return noise_law(sensitivity / (epsilon * (1 - QUALITY_SHARE))).half_width_of_sum(1)


def _listed(answer: str) -> list[str]:
    """The parts of an answer; a part with a comma stands in double quotes."""
    parts = [part.strip() for part in next(csv.reader([answer], skipinitialspace=True, strict=True), [])]
    return [part for part in parts if part]


def _spellings(answer: str) -> dict[str, object]:
    """The fields of an axis that say which other texts count."""
    parts = [part for part in _listed(answer) if part != EXACT]
    pairs = [part.rpartition("=") for part in parts if part != TIDY]
    if not all(text.strip() and value.strip() for text, _, value in pairs):
        raise ValueError(f"is {EXACT}, {TIDY}, or spellings with their categories, as in Romane=Novel, novels=Novel")
    tidy: dict[str, object] = {"tidy": list(STEPS)} if TIDY in parts else {}
    return tidy | ({"spellings": {text.strip(): value.strip() for text, _, value in pairs}} if pairs else {})


def _is_yes(answer: str) -> bool:
    if answer not in (YES, NO):
        raise ValueError("is yes or no")
    return answer == YES


def _date_format(answer: str) -> Answers:
    return {"period_format": _format_named(answer)}


def _format_named(answer: str) -> str:
    formats = _formats_meant(answer)
    if formats:
        raise ValueError(f"did you mean {' or '.join(formats)}? %d is the day, %m the month, %Y the year")
    return answer


def _with_open_ends(bins: Mapping[str, object], column: Column, numbers: Sequence[str]) -> dict[str, object]:
    """Bins with a cell for all values below them and one for all above; whole if the column and the numbers are."""
    open_bins = {**bins, "below": True, "above": True}
    is_whole = column.type.removeprefix("u").startswith("int") and all(map(_WHOLE.fullmatch, numbers))
    return open_bins | {"whole": True} if is_whole else open_bins


def _axis(answer: str, column: Column) -> dict[str, object]:
    """The fields of an axis: bins, edges, categories, bands as text with their lower ends, days, or a public list."""
    if answer in LISTS:
        return {**LISTS[answer]}
    parts = _listed(answer)
    bins = _BINS.fullmatch(answer)
    ends = answer.split()
    # Three numbers are start, stop and width, unless the last one is no width.
    if _EDGES.fullmatch(answer) and (len(ends) > 3 or Fraction(ends[2]) > Fraction(ends[1]) > Fraction(ends[0])):
        return _with_open_ends({"edges": ends}, column, ends)
    if bins and "," not in answer and "=" not in answer and not any(map(_is_day, bins.groups())):
        start, stop, width = bins.groups()
        return _with_open_ends({"start": start, "stop": stop, "width": width}, column, bins.groups())
    if bins and _is_day(bins[1]) and _is_day(bins[2]):
        return {"calendar": bins[3], "start": bins[1], "stop": bins[2]}
    if parts and all("=" in part for part in parts):
        pairs = [part.rpartition("=") for part in parts]
        return {"bands": {text.strip(): end.strip() for text, _, end in pairs}}
    if len(parts) < 2:
        raise ValueError(
            "names one value; write bins as `0 100 5`, uneven ones by their edges as `0 18 40 65 100`, or categories "
            "with commas between"
        )
    return {"values": parts}


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _formats_meant(written: str) -> list[str]:
    """The formats that a date such as 14.09.2026, or a pattern such as TT.MM.JJJJ, may mean; the likeliest first."""
    parts = _DATE.fullmatch(written.strip())
    if parts is None:
        return []
    sign, texts = parts[2], (parts[1], parts[3], parts[4])
    formats = []
    for order in permutations(_DATE_PARTS):
        if "".join(order) in _DATE_ORDERS and all(
            _DATE_PARTS[part].fullmatch(text) for part, text in zip(order, texts, strict=True)
        ):
            formats.append(sign.join(order))
    formats.sort(key=lambda format_: _DATE_ORDERS.index(format_.replace(sign, "")))
    return [ISO if format_ == "%Y-%m-%d" else format_ for format_ in formats]
