"""A mechanism of two measurements that stops between them goes on from one reading, and from the first answer."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

import pytest
from error_codes import coded
from system.small_release import EPSILON, WEEK, Project, charges

from dphist_pipeline.confidential.journal import Journal
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged
from dphist_pipeline.releasing import run as run_module
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.run import NotDrawn, Run
from dphist_pipeline.releasing.store import Store
from examples import mostly_soaked

pytestmark = pytest.mark.stand_in("catalogue", "pictures", why="what a killed run finishes")


class Stopped(Exception):
    """A run that ends at a measurement."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path / "project", mechanism="dpcube", quality={"rows": 4})


def stop_at_measurement(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    asked = []
    answer = Journal.answer

    def stopping(self, step, question, draw):
        asked.append(step)
        if len(asked) == number:
            raise Stopped
        return answer(self, step, question, draw)

    monkeypatch.setattr(Journal, "answer", stopping)


# Two measurements of the mechanism, then four of the quality table.
@pytest.mark.parametrize("measurement", mostly_soaked([1, 2, 3, 6], [1, 3]))
@pytest.mark.parametrize("way", ["pipeline", "handover"])
def test_it_is_finished_at_the_first_price(project: Project, monkeypatch, measurement: int, way: str) -> None:
    with monkeypatch.context() as patched:
        stop_at_measurement(patched, measurement)
        with pytest.raises(Stopped):
            project.release()
    journal = project.root / "confidential" / "journal"
    first = {path.name: path.read_bytes() for path in journal.rglob("*.answer")}
    assert len(first) == measurement - 1
    readings = []
    count = Run.count
    monkeypatch.setattr(Run, "count", lambda *arguments: readings.append(1) or count(*arguments))
    if way == "pipeline":
        project.release()
    else:
        spec, store = ReleaseSpec.load(project.spec), Store.open(project.root)

        with project.witnessed():
            Run.begin(spec, store, WEEK, datetime.now(UTC)).draw()
            Run.begin(spec, store, WEEK, datetime.now(UTC)).publish()
    assert readings == [1]
    assert {path.name: path.read_bytes() for path in journal.rglob("*.answer") if path.name in first} == first
    assert charges(project) == [1]
    assert project.spent() == EPSILON
    assert not list((project.root / "confidential" / "runs").iterdir())
    assert {path.stem for path in journal.rglob("*.answer")} >= {
        f"quality_{what}" for what in ("rows", "failures", "units", "cut")
    }


def test_no_step_after_the_first_derives_again_what_it_froze(project: Project, monkeypatch) -> None:
    """A spec that says something else meanwhile changes neither what is charged, nor what is run, nor what waits."""

    def again(*_: object) -> NoReturn:
        raise AssertionError("derived again")

    spec, store = ReleaseSpec.load(project.spec), Store.open(project.root)
    with project.witnessed():
        run = Run.begin(spec, store, WEEK, datetime.now(UTC))
        for name in ("request_of", "mechanism_run_of", "PublicationRule"):
            monkeypatch.setattr(run_module, name, again)
        monkeypatch.setattr(ReleaseSpec, "mechanism_epsilon", property(again))
        run.spec = spec.model_copy(update={"publish": "manual", "epsilon": spec.epsilon / 2})
        run.draw()
        made = run.publish()
    assert sum(Fraction(row["epsilon"]) for row in made.audit["charges"]) == project.spent() == EPSILON
    assert charges(project) == [1]


def test_what_was_not_drawn_is_not_published_and_the_error_keeps_its_code(project: Project) -> None:
    spec, store = ReleaseSpec.load(project.spec), Store.open(project.root)
    with project.witnessed(), pytest.raises(NotDrawn, check=coded("cube_missing")):
        Run.begin(spec, store, WEEK, datetime.now(UTC)).publish()


@pytest.mark.slow
def test_a_replay_from_the_journal_gives_the_same_quality_table(project: Project) -> None:
    first = (project.release().path / "quality.parquet").read_bytes()
    project.forget("public")
    made = project.release()
    assert (made.path / "quality.parquet").read_bytes() == first
    assert charges(project) == [1]


@pytest.mark.slow
def test_an_altered_or_missing_quality_table_is_noticed(project: Project) -> None:
    table = project.release().path / "quality.parquet"
    content = table.read_bytes()
    for altered in (content[:-1] + b"x", b""):
        table.write_bytes(altered)
        with pytest.raises(PublishedFilesDamaged, match=r"missing or altered quality\.parquet"):
            project.release()
    table.unlink()
    with pytest.raises(PublishedFilesDamaged, match=r"missing or altered quality\.parquet"):
        project.release()
