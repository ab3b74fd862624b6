"""Many processes at once: one charge and one draw a key, never more than an account holds, nothing left over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from error_codes import coded
from system.small_release import EPSILON, FILES, WEEK, WEEKS, Outcome, Project, assert_whole, at_once, charges, start

from dphist_pipeline.errors import AfterCharge
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store
from examples import mostly_soaked

pytestmark = pytest.mark.stand_in("catalogue", "pictures", why="processes that meet; each would build its catalogue")

Make = Callable[..., Project]


@pytest.fixture(params=["file", pytest.param("on_server", marks=pytest.mark.outside)])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes a project whose ledger and witness are files, or lie on a server."""
    server = request.getfixturevalue("database_server") if request.param == "on_server" else None
    return lambda name="project", **more: Project.make(tmp_path / name, server=server, **more)


def assert_nothing_left(project: Project, releases: int) -> None:
    """The store holds the files of so many releases and their journals, and no trace of any run."""
    assert len(project.files("public")) == len(FILES) * releases
    assert len(project.files("confidential/journal")) == releases
    assert not list((project.root / "confidential" / "runs").iterdir())
    assert {path.name for path in (project.root / "confidential").iterdir()} == {"runs", "journal", "folder.json"}
    assert len(list((project.root / "public").glob("*/*/*"))) == releases
    assert not [path for path in project.root.iterdir() if path.name.startswith("ledger.sqlite-")]


def killed_after_its_charge(project: Project) -> Project:
    boundaries = start(project.copy(project.folder.with_name("whole"))).boundaries
    assert start(project, kill_at=boundaries.index("commit") + 2).killed
    assert charges(project) == [1] and not project.files("confidential/journal")
    return project


def race_for_one_key(project: Project, processes: int = 20) -> None:
    outcomes = at_once([(project, WEEK, "")] * processes)

    assert {(made.killed, made.refusal, made.revision) for made in outcomes} == {(False, "", 1)}
    assert not all(made.replayed for made in outcomes)
    assert len({made.files for made in outcomes}) == 1, "they saw different files"
    assert charges(project) == [1] and project.spent() == EPSILON
    assert_whole(project.published())
    assert_nothing_left(project, 1)


def race_for_a_small_account(project: Project) -> None:
    outcomes = at_once([(project, week, "") for week in WEEKS])

    assert Counter(made.refusal for made in outcomes) == {"": 10, "overspend": 10}
    for week, made in zip(WEEKS, outcomes, strict=True):
        assert charges(project, week) == ([] if made.refusal else [1])
        assert project.published(week).exists() == (not made.refusal)
        if not made.refusal:
            assert_whole(project.published(week))
    assert project.spent() == 10 * EPSILON
    assert_nothing_left(project, 10)


def race_of_two_revisions(project: Project) -> None:
    project.release()
    reasons = ("late records", "wrong codes")
    outcomes = at_once([(project, WEEK, reason) for reason in reasons])

    def revisions(outcomes: list[Outcome]) -> list[int]:
        return [made.revision for made in outcomes if not made.refusal]

    assert {made.refusal for made in outcomes} <= {"", "revised_meanwhile"}
    assert revisions(outcomes) and charges(project) == [1, *sorted(revisions(outcomes))]

    again = [project.release(reason=reason) for reason in reasons]  # whoever was refused gets a revision of its own
    for reason, before, after in zip(reasons, outcomes, again, strict=True):
        assert after.audit["reason"] == reason
        assert after.replayed == (not before.refusal)
        assert before.revision in (0, after.audit["revision"])
    assert charges(project) == [1, 2, 3] and project.spent() == 3 * EPSILON
    assert_nothing_left(project, 3)


@pytest.mark.parametrize("processes", mostly_soaked([6, 20], [0]))
def test_many_processes_on_one_key_make_one_charge_and_one_draw(make: Make, processes: int) -> None:
    race_for_one_key(make(), processes)


@pytest.mark.soak
def test_twenty_processes_finish_one_that_was_killed_after_its_charge(make: Make) -> None:
    race_for_one_key(killed_after_its_charge(make()))


@pytest.mark.soak
def test_twenty_keys_on_an_account_with_room_for_ten_make_exactly_ten_releases(make: Make) -> None:
    race_for_a_small_account(make(total=10 * EPSILON))


@pytest.mark.soak
def test_two_revisions_at_once_are_both_made_or_one_is_told_to_ask_again(make: Make) -> None:
    race_of_two_revisions(make())


STEPS = ("reading records", "bounding and counting", "charging the account", "releasing by geometric", "publishing")


def overtaken(project: Project, at: str, reason: str, by: str) -> tuple[Release, Release]:
    """What a call gives, and what the call gives that begins and ends while the first is about to take a step."""
    faster: list[Release] = []

    def progress(step: str) -> None:
        if step == at:
            faster.append(project.release(reason=by))

    return project.release(reason=reason, progress=progress), faster[0]


@pytest.mark.slow
@pytest.mark.parametrize("step", mostly_soaked(STEPS, [1, 3]))
@pytest.mark.parametrize("reason", ["", "late records"])
def test_a_call_overtaken_at_any_step_gives_what_the_faster_one_gave(tmp_path: Path, step: str, reason: str) -> None:
    project = Project.make(tmp_path / "project")
    if reason:
        project.release()
    slower, faster = overtaken(project, step, reason, by=reason)
    assert slower == faster
    assert project.spent() == EPSILON * faster.audit["revision"]
    assert_nothing_left(project, faster.audit["revision"])


def test_a_finish_overtaken_while_it_reads_gives_what_the_faster_one_gave(make: Make) -> None:
    project = killed_after_its_charge(make())
    slower, faster = overtaken(project, "reading records", "", by="")
    assert slower == faster
    assert_nothing_left(project, 1)


@pytest.mark.slow
def test_what_is_published_while_the_ledger_is_opened_does_not_make_it_look_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, read_audits = Project.make(tmp_path / "project"), Store.named_entries

    def overtaken(store: Store) -> Iterator[tuple[str, int, str]]:
        monkeypatch.undo()
        project.release(WEEKS[1])
        yield from read_audits(store)

    monkeypatch.setattr(Store, "named_entries", overtaken)
    project.release()
    assert_nothing_left(project, 2)


@pytest.mark.slow
def test_a_revision_overtaken_by_another_spends_nothing_until_asked_again(make: Make) -> None:
    project = make()
    project.release()
    with pytest.raises(
        AfterCharge, check=coded("revised_meanwhile"), match=r"revision 2 .* 'wrong codes'.* run the same command again"
    ):
        overtaken(project, "charging the account", "late records", by="wrong codes")
    assert charges(project) == [1, 2]
    assert_nothing_left(project, 2)
    assert project.release(reason="late records").audit["revision"] == 3


@pytest.mark.soak
def test_twenty_processes_rebuild_deleted_files_as_they_were(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "project")
    project.release()
    files = project.files("public")
    project.forget("public")
    project.source.unlink()

    outcomes = at_once([(project, WEEK, "")] * 20)

    assert {(made.refusal, made.replayed) for made in outcomes} == {("", True)}
    assert project.files("public") == files
    assert_nothing_left(project, 1)


@pytest.mark.soak
@pytest.mark.parametrize("race", [race_for_one_key, race_for_a_small_account, race_of_two_revisions])
def test_races_end_well_ten_times_in_a_row(race: object, tmp_path: Path) -> None:
    assert callable(race)
    for number in range(10):
        total = 10 * EPSILON if race is race_for_a_small_account else Fraction(10)
        race(Project.make(tmp_path / f"{number}", total=total))
