"""The records of many contributors who answer on one machine: a folder, with a file for each question.

What `contributor` keeps for one person, kept for a column of them: each answers a question once, and gives the same
reports whenever it is asked again; another question adds its epsilon to what each of them has spent, and whoever has
reached the limit does not answer. The folder belongs to the contributors' side: it says who sent which report, and
holds no value.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphist_pipeline.errors import DphistError
from dphist_pipeline.files import make_folder, sync_folder
from dphist_pipeline.local.contributor import RecordUnusable
from dphist_pipeline.local.encoding import encode, report_ids, sent
from dphist_pipeline.local.kept_answers import KeptAnswers, who_spent
from dphist_pipeline.local.question import Question
from dphist_pipeline.random_words import random_words

Bytes = NDArray[np.uint8]

LIMIT = "limit.json"
DRAFT = ".draft"


class AllReachedTheirLimit(DphistError):
    """A question that none of the contributors can answer any more."""

    def __init__(self, question: Question, limit: Fraction) -> None:
        self.question, self.limit = question, limit
        super().__init__(
            f"answering '{question.collection}' (round {question.round}) spends epsilon {question.epsilon}, and nobody "
            f"has so much left of {limit}. Nothing was answered. Only the contributors can decide on a higher limit."
        )


@dataclass(frozen=True, eq=False)
class Answers:
    """Reports of many contributors to one question, in an order that tells nothing.

    Attributes:
        ids: uint8, shape (reports, 16).
        bodies: uint8, shape (reports, bytes of a report).
        contributors: how many of them answer, now or before.
        exhausted: how many had reached their limit, and do not.
    """

    ids: Bytes
    bodies: Bytes
    contributors: int
    exhausted: int


@dataclass(frozen=True)
class Contributors:
    """The records in a folder.

    Attributes:
        folder: private, one file a question.
        limit: the most that all answers of a contributor together may spend.
    """

    folder: Path
    limit: Fraction

    @classmethod
    def open(cls, folder: Path, limit: Fraction | None) -> Contributors:
        """The records in a folder; if there are none and a limit is given, it is fixed there with the first answer.

        Raises:
            RecordUnusable: there are none and no limit is given, another limit was, or they are damaged.
        """
        agreed = _agreed_limit(folder, limit)
        try:
            if not (folder / LIMIT).exists():
                make_folder(folder)
        except OSError as error:
            raise RecordUnusable(folder, f"cannot be made ({error.strerror})") from error
        return cls(folder, agreed)

    def answer(self, question: Question, names: Sequence[str], values: NDArray[np.float64]) -> Answers:
        """The reports of contributors to a question; drawn for those who did not answer it yet, and durable.

        Args:
            question: what is asked.
            names: of the contributors, for each value; a contributor may have several, or nan for none.
            values: shape (names,).

        Raises:
            AllReachedTheirLimit: nothing was drawn.
            RecordUnusable: no report was given away.
        """
        asked, rows = _by_contributor(names, values, question.values)
        with self._held():
            _agreed_limit(self.folder, self.limit)  # somebody else may have answered first, with another
            known = self._answered(question)
            spent = self._spent(question)
            answered = set(known.contributors)
            fresh = [place for place, name in enumerate(asked) if name not in answered]
            able = [place for place in fresh if spent[asked[place]] + question.epsilon <= self.limit]
            if fresh and not able and len(fresh) == len(asked):
                raise AllReachedTheirLimit(question, self.limit)
            if able:
                known = known.joined(_drawn(question, [asked[place] for place in able], rows[able]))
                if not _anybody_answered(self.folder):
                    self._keep(LIMIT, lambda file: file.write(json.dumps({"limit": str(self.limit)}).encode() + b"\n"))
                self._keep(self._file(question).name, lambda file: known.write(question, file))
        chosen = known.of(set(asked))
        order = np.lexsort(chosen.ids.T[::-1])  # ids are random
        order = order[chosen.are_sent[order]]
        exhausted = len(fresh) - len(able)
        return Answers(chosen.ids[order], chosen.bodies[order], len(asked) - exhausted, exhausted)

    def refuse_changed_rows(self, file: str, rows: int) -> None:
        """Refuses rows that are named by their places in a file, if the file had another number of rows before.

        People would get the names of others, and answer twice.

        Raises:
            RecordUnusable: nothing was answered.
        """
        ending = f" of {file}"
        for kept in sorted(self.folder.glob("*.parquet")):
            known = sum(name.startswith("row ") and name.endswith(ending) for name in who_spent(kept)[0])
            if known not in (0, rows):
                raise RecordUnusable(
                    self.folder,
                    f"knows another number of rows of {file}, and rows have no names but their places: encode the file "
                    "as it was, or give everybody an id and name its column with --contributor",
                )

    @contextmanager
    def _held(self) -> Iterator[None]:
        try:
            handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise RecordUnusable(self.folder, f"cannot be read ({error.strerror})") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _file(self, question: Question) -> Path:
        return self.folder / f"{question.digest}.parquet"

    def _answered(self, question: Question) -> KeptAnswers:
        file = self._file(question)
        return KeptAnswers.read(question, file) if file.exists() else KeptAnswers.nothing(question)

    def _spent(self, question: Question) -> defaultdict[str, Fraction]:
        """What each contributor has spent on other questions."""
        spent: defaultdict[str, Fraction] = defaultdict(Fraction)
        for file in sorted(self.folder.glob("*.parquet")):
            if file != self._file(question):
                names, epsilon = who_spent(file)
                for name in names:
                    spent[name] += epsilon
        return spent

    def _keep(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Replaces a file of the folder, whole or not at all; to be called while it is held."""
        draft = self.folder / DRAFT
        try:
            draft.unlink(missing_ok=True)  # of a program that was killed before it gave anything away
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.folder / name)
            sync_folder(self.folder)
        except OSError as error:
            raise RecordUnusable(
                self.folder, f"cannot be written ({error.strerror}); no report was given away"
            ) from error


def _drawn(question: Question, names: list[str], rows: NDArray[np.float64]) -> KeptAnswers:
    reports = len(names) * question.reports
    return KeptAnswers(
        [name for name in names for _ in range(question.reports)],
        report_ids(reports),
        encode(question, rows),
        sent(question, reports),
    )


def _by_contributor(
    names: Sequence[str], values: NDArray[np.float64], wanted: int
) -> tuple[list[str], NDArray[np.float64]]:
    """Each contributor once, with exactly so many values: some chosen at random, nan for missing ones."""
    coded = pa.array(names, pa.string()).dictionary_encode()
    known, owners = coded.dictionary.to_pylist(), coded.indices.to_numpy()
    rows = np.full((len(known), wanted), np.nan)
    present = np.flatnonzero(~np.isnan(values))
    shuffled = present[np.argsort(random_words(present.size), kind="stable")]
    order = shuffled[np.argsort(owners[shuffled], kind="stable")]
    sizes = np.bincount(owners[order], minlength=len(known))
    rank = np.arange(order.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = rank < wanted
    rows[owners[order[kept]], rank[kept]] = values[order[kept]]
    return known, rows


def _anybody_answered(folder: Path) -> bool:
    return any(folder.glob("*.parquet"))


def _agreed_limit(folder: Path, wanted: Fraction | None) -> Fraction:
    """The limit of the records in a folder: as wanted until somebody answers, from then on as it was fixed.

    It is on the disk before the first answer, so one without answers is of a program that gave nothing away.
    """
    answered = _anybody_answered(folder)  # looked at first: who answers in between has fixed the limit before
    known = folder / LIMIT
    if not known.exists():
        if answered:
            raise RecordUnusable(folder, f"has files, and no {LIMIT}; restore it, or name a new folder")
        if wanted is None:
            raise RecordUnusable(folder, "is not there yet: begin one with a limit, as in --limit 5")
        return wanted
    try:
        fixed = Fraction(json.loads(known.read_bytes())["limit"])
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        fixed = None
    if fixed is None or fixed <= 0:
        raise RecordUnusable(folder, f"has a damaged {LIMIT}; restore it. Without it nothing is answered")
    if wanted is None or wanted == fixed:
        return fixed
    if answered:
        raise RecordUnusable(folder, f"was begun with a limit of {fixed}, and keeps it: leave out --limit")
    return wanted
