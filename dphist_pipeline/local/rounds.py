"""The files that a round of a collection leaves in the store, for steps that run in different processes.

    public/dph_collections/<collection>/<round>/question.json   what contributors are asked; it never changes
                                                tally.json      the counted reports, replaced when there are more

Both are public, as reports are: contributors perturbed them. A tally holds no report and no id. No release can lie in
that folder, because no release may have a name that starts with `dph_`.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from dphist_pipeline.base.canonical_json import sha256
from dphist_pipeline.base.files import make_folder, sync_folder, write_durably
from dphist_pipeline.errors import Refused
from dphist_pipeline.local._late_consumers import why_unserved
from dphist_pipeline.local.partition import question_of
from dphist_pipeline.local.publication import CountedReports, count_reports, estimate_of, report_files
from dphist_pipeline.local.question import Question
from dphist_pipeline.local.reports import MALFORMED, NAMED, REFUSALS
from dphist_pipeline.local.tally import Tally
from dphist_pipeline.releasing.store import Key, Store
from dphist_pipeline.spec.collection import CollectionSpec

FOLDER = "dph_collections"
QUESTION, TALLY = "question.json", "tally.json"
FORMAT = 1


def asked_otherwise(spec: CollectionSpec, path: Path, why: str) -> Refused:
    """A round in which another question was asked already; `why` names the late consumer, if one explains it."""
    return Refused(
        f"collection '{spec.collection}', round {spec.round}, asks another question by now than the one at {path}, "
        f"which contributors may have answered. {why}{' ' if why else ''}Declare a new `round`, or undo the change "
        "of the spec; if nobody was given the question, delete that file.",
        code="asked_otherwise",
    )


def tally_unusable(spec: CollectionSpec, path: Path, problem: str) -> Refused:
    """A tally that is missing, damaged, or of another question."""
    return Refused(
        f"the tally of collection '{spec.collection}' at {path} {problem}. Materialize `reports` again: it counts "
        "them anew, at no cost.",
        code="tally_unusable",
    )


def file_of(spec: CollectionSpec, store: Store, name: str) -> Path:
    """The place of a round's file."""
    return store.public / FOLDER / str(spec.collection) / spec.round / name


def ask(spec: CollectionSpec, store: Store) -> Question:
    """Writes the question for contributors, or finds that it is there."""
    question, place = question_of(spec), file_of(spec, store, QUESTION)
    content = question.to_json().encode("ascii") + b"\n"
    with store.building():  # of two specs that differ, only one asks
        if not place.exists():
            _replace_file(spec, store, place, content)
    if place.read_bytes() != content:
        digest = hashlib.sha256(place.read_bytes().removesuffix(b"\n")).hexdigest()[:NAMED]
        raise asked_otherwise(spec, place, why_unserved(spec, {digest}))
    return question


def count(spec: CollectionSpec, store: Store) -> tuple[CountedReports, str]:
    """Counts all reports that are there now, and replaces the tally; gives what was counted and the tally's digest."""
    counted = count_reports(spec, report_files(spec))
    facts = {
        "format": FORMAT,
        "question": counted.tally.question.digest,
        "reports": counted.tally.reports,
        "refused": counted.refused,
        "ones": [ones.tolist() for ones in counted.tally.ones],
    }
    digest = sha256(facts)
    content = json.dumps({**facts, "digest": digest}, separators=(",", ":")).encode("ascii") + b"\n"
    _replace_file(spec, store, file_of(spec, store, TALLY), content)
    return counted, digest


def read_tally(spec: CollectionSpec, store: Store) -> CountedReports:
    """The counted reports that `count` wrote."""
    place, question = file_of(spec, store, TALLY), question_of(spec)
    problem = "is damaged"
    try:
        facts = json.loads(place.read_bytes())
        if facts.pop("digest") == sha256(facts) and facts["format"] == FORMAT:
            if facts["question"] == question.digest:
                refused = {reason: int(facts["refused"][reason]) for reason in REFUSALS}
                ones = [np.array(row, dtype=np.int64) for row in facts["ones"]]
                return CountedReports(Tally(question, int(facts["reports"]), refused[MALFORMED], ones), refused)
            problem = "is of another question than the spec asks"
    except FileNotFoundError:
        problem = "is not there yet"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError):
        pass
    raise tally_unusable(spec, place, problem)


def publishable(spec: CollectionSpec, store: Store) -> dict[str, bool]:
    """The conditions for publishing, by name, judged by the files that consumers' steps will read."""
    counted, file = read_tally(spec, store), file_of(spec, store, QUESTION)
    estimates = [estimate_of(spec, counted, number).values for number in range(len(spec.consumers))]
    return {
        "intervals complete": all(np.isfinite(values).all() for values in estimates)
        and [values.shape for values in estimates] == [(consumer.intervals,) for consumer in spec.consumers],
        # A question's digest is that of its text without the end of the line.
        "question was asked": file.exists()
        and hashlib.sha256(file.read_bytes().strip()).hexdigest() == counted.tally.question.digest,
    }


def _replace_file(spec: CollectionSpec, store: Store, place: Path, content: bytes) -> None:
    """Replaces a public file, whole or not at all."""
    make_folder(place.parent, 0o755)
    with store.run(Key(str(spec.collection), spec.round, 1)) as scratch:
        draft = scratch / place.name
        write_durably(draft, content)
        draft.chmod(0o644)
        draft.replace(place)
    sync_folder(place.parent)
