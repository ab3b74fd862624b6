"""The records of many contributors who answer on one machine: a private folder with a Parquet file for each question.

It keeps for many people what `contributor` keeps for one: each answers a question once, and asking again returns the
same reports. Another question adds its epsilon to what each of them has spent, and those who have reached the limit do
not answer. The folder belongs to the contributors' side: it says who sent which report, and holds no value.

    <question's digest>.parquet   a row for each report, also those that were not sent; the epsilon in its metadata
    limit.json                    the most that a contributor ever spends; and how ids are compared: with `ids: forms`,
                                  by `trim_all`, `number` and `fold` of `unit_forms`; with `ids: whole`, of
                                  earlier versions, without blanks at the ends and zeros before a number; without
                                  `ids`, of versions before those, as they are written
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.base import unit_forms
from dphist_pipeline.base.files import locked_folder, make_folder, replace_durably
from dphist_pipeline.base.random_words import random_words
from dphist_pipeline.errors import Refused
from dphist_pipeline.local.contributor import record_unusable
from dphist_pipeline.local.encoding import encode, report_ids, sent_reports
from dphist_pipeline.local.question import Question
from dphist_pipeline.local.reports import ID_BYTES, as_matrix

Bytes = NDArray[np.uint8]

LIMIT = "limit.json"
DRAFT = ".draft"
SCHEMA = pa.schema(
    [("contributor", pa.string()), ("report_id", pa.binary()), ("report", pa.large_binary()), ("sent", pa.bool_())]
)
DAMAGED = "is damaged; restore it. Without it nothing is answered"

_EPSILON = b"epsilon"
_FORM, _FORM_BEFORE = "forms", "whole"
_BLANKS = " \t\n\r\u00a0"  # of `_FORM_BEFORE`
_UNSOUND = (pa.ArrowException, OSError, KeyError, ValueError, TypeError, ArithmeticError)


def all_reached_their_limit(question: Question, limit: Fraction) -> Refused:
    """A question that none of the contributors can answer any more."""
    return Refused(
        f"answering '{question.collection}' (round {question.round}) spends epsilon {question.epsilon}, and nobody "
        f"has so much left of {limit}. Nothing was answered. Only the contributors can decide on a higher limit.",
        code="all_reached_their_limit",
    )


@dataclass(frozen=True, eq=False)
class Answers:
    """Reports of many contributors to one question, in the order of their random ids.

    Attributes:
        ids: uint8, shape (reports, 16).
        bodies: uint8, shape (reports, bytes of a report).
        contributors: number of people who answer, now or before.
        exhausted: number of people who do not, because they had reached their limit.
    """

    ids: Bytes
    bodies: Bytes
    contributors: int
    exhausted: int


@dataclass(frozen=True)
class RecordFolder:
    """The records in a folder.

    Attributes:
        folder: private, one file a question.
        limit: the most that all answers of a contributor together may spend.
    """

    folder: Path
    limit: Fraction

    @classmethod
    def open(cls, folder: Path, limit: Fraction | None) -> RecordFolder:
        """Opens the records in a folder; a new folder gets the given limit with its first answer.

        Args:
            limit: the most epsilon, exact, that all answers of a contributor may spend; None for the one kept there.

        Raises:
            Halted: there are none and no limit is given, another limit was, or they are damaged.
        """
        agreed = _agreed_limit(folder, limit)
        try:
            if not (folder / LIMIT).exists():
                make_folder(folder)
        except OSError as error:
            raise record_unusable(folder, f"cannot be made ({error.strerror})") from error
        return cls(folder, agreed)

    def answer(self, question: Question, names: Sequence[str], values: NDArray[np.float64]) -> Answers:
        """The reports of contributors to a question: drawn for those who did not answer it before, and kept durably.

        Args:
            names: of the contributors, for each value; a contributor may have several values, or nan for none.
            values: shape (names,).

        Raises:
            Refused: nothing was drawn.
            Halted: no report was given away.
        """
        with self._held():
            _agreed_limit(self.folder, self.limit)  # another program may have answered first, with another limit
            form = _ids_of(self.folder) if _anybody_answered(self.folder) else _FORM
            names, values = _normalised_names(names, values, form)
            contributors, rows = _by_contributor(names, values, question.values)
            file = self.folder / f"{question.digest}.parquet"
            answers = _read_answers(question, file) if file.exists() else SCHEMA.empty_table()
            answered, spent = set(answers.column("contributor").to_pylist()), self._spent_elsewhere(file)
            fresh = [place for place, name in enumerate(contributors) if name not in answered]
            able = [place for place in fresh if spent[contributors[place]] + question.epsilon <= self.limit]
            if fresh and not able and len(fresh) == len(contributors):
                raise all_reached_their_limit(question, self.limit)
            if able:
                answers = pa.concat_tables(
                    [answers, _draw_rows(question, [contributors[place] for place in able], rows[able])]
                )
                if not _anybody_answered(self.folder):
                    self._keep(LIMIT, json.dumps({"limit": str(self.limit), "ids": _FORM}).encode() + b"\n")
                self._keep(file.name, _as_parquet(question, answers))
        mine = pc.is_in(answers.column("contributor"), pa.array(contributors, pa.string()))
        reports = answers.filter(pc.and_(mine, answers.column("sent"))).sort_by("report_id")
        ids, bodies = (reports.column(name).combine_chunks() for name in ("report_id", "report"))
        exhausted = len(fresh) - len(able)
        return Answers(
            as_matrix(ids, ID_BYTES), as_matrix(bodies, question.report_bytes), len(contributors) - exhausted, exhausted
        )

    def refuse_changed_rows(self, file: str, rows: int) -> None:
        """Refuses a file whose rows are named by their numbers, if it had another number of rows before.

        People would get the names of others, and could answer twice. The file is told by its name without a folder, as
        in 'row 1 of FILE'.

        Raises:
            Halted: nothing was answered.
        """
        ending = f" of {file}"
        for record in sorted(self.folder.glob("*.parquet")):
            rows_before = sum(name.startswith("row ") and name.endswith(ending) for name in _who_spent(record)[0])
            if rows_before not in (0, rows):
                raise record_unusable(
                    self.folder,
                    f"knows another number of rows of {file}, and rows have no names but their places: encode the file "
                    "as it was, or give everybody an id and name its column with --contributor",
                )

    @contextmanager
    def _held(self) -> Iterator[None]:
        with ExitStack() as stack:
            try:
                stack.enter_context(locked_folder(self.folder))
            except OSError as error:
                raise record_unusable(self.folder, f"cannot be read ({error.strerror})") from error
            yield

    def _spent_elsewhere(self, question: Path) -> defaultdict[str, Fraction]:
        """What each contributor has spent on questions other than that of a file."""
        spent: defaultdict[str, Fraction] = defaultdict(Fraction)
        for file in sorted(self.folder.glob("*.parquet")):
            if file != question:
                names, epsilon = _who_spent(file)
                for name in names:
                    spent[name] += epsilon
        return spent

    def _keep(self, name: str, content: bytes) -> None:
        """Replaces a file of the folder, whole or not at all; to be called while the folder is held."""
        try:
            replace_durably(self.folder / name, self.folder / DRAFT, content)
        except OSError as error:
            raise record_unusable(
                self.folder, f"cannot be written ({error.strerror}); no report was given away"
            ) from error


def _draw_rows(question: Question, names: list[str], rows: NDArray[np.float64]) -> Any:
    reports = len(names) * question.reports
    columns = [
        [name for name in names for _ in range(question.reports)],
        [row.tobytes() for row in report_ids(reports)],
        [row.tobytes() for row in encode(question, rows)],
        sent_reports(question, reports),
    ]
    return pa.table(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)


def _read_answers(question: Question, file: Path) -> Any:
    """The answers to a question in its file."""
    try:
        answers = pq.ParquetFile(file).read()
        table, epsilon = answers.select(SCHEMA.names).cast(SCHEMA), _epsilon(answers.schema)
        lengths = {
            name: set(pc.unique(pc.binary_length(table.column(name))).to_pylist()) for name in ("report_id", "report")
        }
        sound = epsilon == question.epsilon and not any(column.null_count for column in table.columns)
        sound &= lengths["report_id"] <= {ID_BYTES} and lengths["report"] <= {question.report_bytes}
        most = pc.max(table.column("contributor").value_counts().field("counts")).as_py() or 0
        if sound and most <= question.reports:
            return table.replace_schema_metadata()
    except _UNSOUND:
        pass
    raise record_unusable(file, DAMAGED)


def _as_parquet(question: Question, answers: Any) -> bytes:
    stream = pa.BufferOutputStream()
    table = answers.replace_schema_metadata({_EPSILON: str(question.epsilon)})
    pq.write_table(table, stream, write_statistics=False)
    return bytes(stream.getvalue())


def _who_spent(file: Path) -> tuple[list[str], Fraction]:
    """The contributors who answered the question of a file, each once, and what each of them spent."""
    try:
        table = pq.ParquetFile(file).read(["contributor"])
        return table.column("contributor").unique().to_pylist(), _epsilon(table.schema)
    except _UNSOUND:
        raise record_unusable(file, DAMAGED) from None


def _epsilon(schema: Any) -> Fraction:
    epsilon = Fraction(schema.metadata[_EPSILON].decode())
    if epsilon <= 0:
        raise ValueError
    return epsilon


def _by_contributor(
    names: Sequence[str], values: NDArray[np.float64], number: int
) -> tuple[list[str], NDArray[np.float64]]:
    """Each contributor once, with exactly `number` values: some chosen at random, nan for missing ones."""
    coded = pa.array(names, pa.string()).dictionary_encode()
    names_of, owners = coded.dictionary.to_pylist(), coded.indices.to_numpy()
    rows = np.full((len(names_of), number), np.nan)
    present = np.flatnonzero(~np.isnan(values))
    shuffled = present[np.argsort(random_words(present.size), kind="stable")]
    order = shuffled[np.argsort(owners[shuffled], kind="stable")]
    sizes = np.bincount(owners[order], minlength=len(names_of))
    rank = np.arange(order.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    fits = rank < number
    rows[owners[order[fits]], rank[fits]] = values[order[fits]]
    return names_of, rows


def _normalised_names(
    names: Sequence[str], values: NDArray[np.float64], form: str | None
) -> tuple[list[str], NDArray[np.float64]]:
    """Names in the form of a folder, so that `1`, `1.0` and ` 001 ` are one; without those of which nothing is left."""
    if form is None:
        return list(names), values
    in_form = _standard_name if form == _FORM else _whole
    formed = [name if name.startswith("row ") else in_form(name) for name in names]
    has_name = np.array([name != "" for name in formed], dtype=bool)
    return [name for name in formed if name], values[has_name]


def _standard_name(name: str) -> str:
    return unit_forms.fold_text(unit_forms.as_number(unit_forms.trim_all(name)))


def _whole(name: str) -> str:
    text = unicodedata.normalize("NFC", name.strip(_BLANKS))
    return re.sub(r"^0+(?=[0-9]+$)", "", text)


def _ids_of(folder: Path) -> str | None:
    """The form of ids in a folder in which somebody answered; None for the form of earlier versions."""
    form = json.loads((folder / LIMIT).read_bytes()).get("ids")
    if form not in (None, _FORM_BEFORE, _FORM):
        raise record_unusable(folder, f"has ids in a form that this version does not know ({form!r}); use a newer one")
    return None if form is None else str(form)


def _anybody_answered(folder: Path) -> bool:
    return any(folder.glob("*.parquet"))


def _agreed_limit(folder: Path, limit: Fraction | None) -> Fraction:
    """The limit of the records in a folder: the wanted one until somebody answers, from then on the fixed one.

    The limit is on the disk before the first answer, so a limit without answers binds nobody.
    """
    answered = _anybody_answered(folder)  # first: a program that answers in between has fixed the limit before
    file = folder / LIMIT
    if not file.exists():
        if answered:
            raise record_unusable(folder, f"has files, and no {LIMIT}; restore it, or name a new folder")
        if limit is None:
            raise record_unusable(folder, "is not there yet: begin one with a limit, as in --limit 5")
        return limit
    try:
        fixed = Fraction(json.loads(file.read_bytes())["limit"])
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        fixed = None
    if fixed is None or fixed <= 0:
        raise record_unusable(folder, f"has a damaged {LIMIT}; restore it. Without it nothing is answered")
    if limit is None or limit == fixed:
        return fixed
    if answered:
        raise record_unusable(folder, f"was begun with a limit of {fixed}, and keeps it: leave out --limit")
    return limit
