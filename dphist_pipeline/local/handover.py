"""A collection under local privacy in steps that may run in different processes, as an orchestrator runs them.

What a step leaves for the next lies in the store, where no release can lie, since none may be called `dph_…`:

    public/dph_collections/<collection>/<round>/question.json   what contributors are asked; it never changes
                                                tally.json      the reports to it, counted

Both are public, as reports are: contributors perturbed them. A tally holds no report and no id. It is the files that
are counted again when there are more of them, and every consumer's histogram is made from one and the same tally.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.canonical_json import sha256
from dphist_pipeline.errors import DphistError
from dphist_pipeline.files import make_folder, sync_folder, write_durably
from dphist_pipeline.local.collection import CollectionSpec
from dphist_pipeline.local.partition import question_of
from dphist_pipeline.local.publication import Counted, count_reports, estimate_of, publish_collection
from dphist_pipeline.local.question import Question
from dphist_pipeline.local.reports import MALFORMED, REFUSALS, files_at
from dphist_pipeline.local.tally import Tally
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Key, Store

FOLDER = "dph_collections"
QUESTION, TALLY = "question.json", "tally.json"
FORMAT = 1
_TALLIED = {"format", "question", "reports", "refused", "ones"}


class AskedOtherwise(DphistError):
    """A round whose question is there already, and is another one."""

    def __init__(self, spec: CollectionSpec, path: Path) -> None:
        self.path = path
        super().__init__(
            f"collection '{spec.collection}', round {spec.round}, asks another question by now than the one at {path}, "
            "which contributors may have answered. Declare a new `round`, or undo the change of the spec; if nobody "
            "was given the question, delete that file."
        )


class NothingSent(DphistError):
    """No file of reports where the spec says that they are."""

    def __init__(self, spec: CollectionSpec) -> None:
        super().__init__(
            f"no file matches `reports: {spec.reports}` of collection '{spec.collection}', looked for from its "
            "project's folder. Put the Parquet files of reports there; nothing was published."
        )


class TallyUnusable(DphistError):
    """Reports that were not counted yet, or to another question, or whose tally is damaged."""

    def __init__(self, spec: CollectionSpec, path: Path, problem: str) -> None:
        self.path = path
        super().__init__(
            f"the tally of collection '{spec.collection}' at {path} {problem}. Materialize `reports` again: it counts "
            "them anew, for nothing."
        )


def folder_of(spec: CollectionSpec, store: Store) -> Path:
    """Where a round's question and tally lie."""
    return store.public / FOLDER / str(spec.collection) / spec.round


def ask(spec: CollectionSpec, store: Store) -> Question:
    """Leaves the question for contributors; done again, it finds the same one.

    Raises:
        AskedOtherwise: another question has been asked in this round.
    """
    question = question_of(spec)
    place = folder_of(spec, store) / QUESTION
    content = question.to_json().encode("ascii") + b"\n"
    with store.building():  # so that of two specs that differ, one asks
        if not place.exists():
            _put(spec, store, place, content)
    if place.read_bytes() != content:
        raise AskedOtherwise(spec, place)
    return question


def count(spec: CollectionSpec, store: Store) -> tuple[Counted, str]:
    """Counts all reports, and leaves their tally instead of the one before.

    Returns:
        What was counted, and the digest of it.

    Raises:
        NothingSent, NoReports, ReportsUnreadable.
    """
    files = files_at(str(spec.reports_pattern))
    if not files:
        raise NothingSent(spec)
    counted = count_reports(spec, files)
    facts = {
        "format": FORMAT,
        "question": counted.tally.question.digest,
        "reports": counted.tally.reports,
        "refused": counted.refused,
        "ones": [ones.tolist() for ones in counted.tally.ones],
    }
    digest = sha256(facts)
    content = json.dumps({**facts, "digest": digest}, separators=(",", ":")).encode("ascii") + b"\n"
    _put(spec, store, folder_of(spec, store) / TALLY, content)
    return counted, digest


def tallied(spec: CollectionSpec, store: Store) -> Counted:
    """What `count` left.

    Raises:
        TallyUnusable.
    """
    place, question = folder_of(spec, store) / TALLY, question_of(spec)
    if not place.exists():
        raise TallyUnusable(spec, place, "is not there yet")
    try:
        facts = json.loads(place.read_bytes())
        whole = facts.pop("digest") == sha256(facts) and set(facts) == _TALLIED and facts["format"] == FORMAT
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError):
        whole = False
    if not whole:
        raise TallyUnusable(spec, place, "is damaged")
    if facts["question"] != question.digest:
        raise TallyUnusable(spec, place, "is of another question than the spec asks")
    refused = {reason: int(facts["refused"][reason]) for reason in REFUSALS}
    ones: list[NDArray[np.int64]] = [np.array(row, dtype=np.int64) for row in facts["ones"]]
    return Counted(Tally(question, int(facts["reports"]), refused[MALFORMED], ones), refused)


def publishable(spec: CollectionSpec, store: Store) -> dict[str, bool]:
    """What must hold before anything is published, read from what consumers will read."""
    counted = tallied(spec, store)
    made = [estimate_of(spec, counted, number).values for number in range(len(spec.consumers))]
    expected = [(consumer.intervals,) for consumer in spec.consumers]
    asked = folder_of(spec, store) / QUESTION
    return {
        "intervals complete": all(np.isfinite(values).all() for values in made)
        and [values.shape for values in made] == expected,
        "question was asked": asked.exists() and _asked(asked) == counted.tally.question.digest,
    }


def publish(spec: CollectionSpec, store: Store, consumer: str) -> Release:
    """Publishes a consumer's histogram from the tally, or gives back what was published.

    Raises:
        TallyUnusable, ReportsChanged, TakenByARelease, PublicationWithdrawn.
    """
    (made,) = publish_collection(spec, store, tallied(spec, store), only=consumer)
    return made


def _asked(place: Path) -> str:
    """The digest of a question as it lies there: of its canonical text, without the end of the line."""
    return hashlib.sha256(place.read_bytes().strip()).hexdigest()


def _put(spec: CollectionSpec, store: Store, place: Path, content: bytes) -> None:
    """A public file that appears whole, instead of the one before."""
    make_folder(place.parent, 0o755)
    with store.run(Key(str(spec.collection), spec.round, 1)) as scratch:
        draft = scratch / place.name
        write_durably(draft, content)
        draft.chmod(0o644)
        draft.replace(place)
    sync_folder(place.parent)
