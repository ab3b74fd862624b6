"""Publishing a collection: every consumer's histogram, the same from the same reports, never another by accident."""

from __future__ import annotations

import math
import os
import signal
from fractions import Fraction
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from error_codes import coded
from local_office import COLLECTION, LocalOffice, sure
from office import Office

from dphist_pipeline.answering import building
from dphist_pipeline.answering.published import audit_in_force
from dphist_pipeline.errors import DphistError, Halted, Refused
from dphist_pipeline.local.partition import question_of
from dphist_pipeline.local.publication import count_reports, estimate_of, publish_collection
from dphist_pipeline.local.question import Question
from dphist_pipeline.publishing.published_files import PublishedFolder
from dphist_pipeline.releasing import _approvals as approvals
from dphist_pipeline.releasing import publisher
from dphist_pipeline.releasing import release as verbs
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Key

pytestmark = pytest.mark.stand_in("pictures", why="what is published when; pictures are tried elsewhere")
AGES = np.arange(400) % 100
CONSUMERS = COLLECTION["consumers"]


@pytest.fixture
def local(office: Office, monkeypatch: pytest.MonkeyPatch) -> LocalOffice:
    # The catalogue is tested with the commands.
    monkeypatch.setattr(building, "build_apart", lambda public, scratch, anew: None)
    return LocalOffice(office)


def publish(
    local: LocalOffice, *files: Path, reason: str = "", only: str | None = None, **changes: Any
) -> list[Release]:
    spec = local.declared(**changes)
    return publish_collection(spec, local.store, count_reports(spec, files), reason=reason, only=only)


def counts(local: LocalOffice, ages: Any, **changes: Any) -> dict[str, list[float]]:
    """What each consumer is told, rounded where epsilon is 50: by name, unbiased."""
    spec = local.declared(**changes)
    counted = count_reports(spec, [local.reports(question_of(spec), ages)])
    found = {}
    for number, consumer in enumerate(spec.consumers):
        unbiased = estimate_of(spec, counted, number).unbiased
        assert unbiased is not None
        found[str(consumer.name)] = np.round(unbiased.values, 3).tolist()
    return found


@pytest.mark.parametrize("encoding", ["symmetric", "optimized", "grr"])
@pytest.mark.parametrize("protocol", ["chp", "split_budget"])
def test_without_doubt_every_consumer_is_told_the_truth(local: LocalOffice, protocol: str, encoding: str) -> None:
    values = [*AGES, 100, -1, 100.5, math.nan, math.inf]
    found = counts(local, values, consumers=sure(CONSUMERS), protocol=protocol, encoding=encoding)
    truth = {"city": [100, 100, 100, 101], "state": [260, 141]}
    # A fair coin decides for an optimized 1: of n values, n come back with a standard error of the root of n.
    for name, numbers in truth.items():
        off = np.abs(np.array(found[name]) - numbers)
        assert np.all(off <= (6.5 * np.sqrt(numbers) if encoding == "optimized" else 0.01))


@pytest.mark.parametrize(
    "consumers",
    [
        [{"name": "city", "edges": [0, "0.3", 1]}, {"name": "state", "width": "0.1"}],
        [{"name": "city", "edges": [0, 0.3, 1]}, {"name": "state", "bins": 10}],
    ],
)
def test_boundaries_that_are_equal_as_decimals_are_one(local: LocalOffice, consumers: list[dict[str, Any]]) -> None:
    values = [0.1 + 0.2, 0.3, 0.7, 0.1 * 7, 0.29999999999999998]
    found = counts(local, values, stop=1, consumers=sure(consumers))
    assert len(question_of(local.declared(stop=1, consumers=sure(consumers))).parts[0].edges) == 11
    assert sum(found["city"]) == sum(found["state"]) == 5
    assert found["city"] == [sum(found["state"][:3]), sum(found["state"][3:])]


def test_one_consumer_is_published_by_shp(local: LocalOffice) -> None:
    one = sure(CONSUMERS[:1])
    assert counts(local, AGES, protocol="shp", consumers=one) == {"city": [100, 100, 100, 100]}
    (made,) = publish(local, local.folder / "reports" / "a.parquet", protocol="shp", consumers=one)
    assert (made.audit["mechanism"], made.audit["release"], made.audit["epsilon"]) == ("shp", "ages_city", "50")


@pytest.mark.slow
def test_sampled_reports_count_for_those_that_were_not_sent(local: LocalOffice) -> None:
    changes = {"protocol": "sampled", "participation": "1/4", "consumers": sure(CONSUMERS)}
    found = counts(local, AGES, **changes)  # all of them sent: four times as many as there are
    assert found == {"city": [400] * 4, "state": [1040, 560]}
    made = publish(local, local.folder / "reports" / "a.parquet", **changes)
    assert [release.audit["settings"]["participation"] for release in made] == ["1/4"] * 2
    assert {release.audit["epsilon"] for release in made} == {"50"}


@pytest.mark.parametrize("values", ["separate", "summed"])
def test_several_values_of_a_contributor_all_count(local: LocalOffice, values: str) -> None:
    changes = {"values_per_contributor": 2, "values": values, "consumers": [{**CONSUMERS[0], "epsilon": 25}]}
    (found,) = counts(local, AGES.reshape(-1, 2), protocol="shp", **changes).values()
    assert np.all(np.abs(np.array(found) - 100) < 6)  # once in 270,000 times a bit is turned round
    (made,) = publish(local, local.folder / "reports" / "a.parquet", protocol="shp", **changes)
    reports = made.audit["reports"]
    assert (reports["values"], reports["accepted"]) == (400, 200 if values == "summed" else 400)
    assert (made.audit["max_rows_per_unit"], made.audit["epsilon"]) == (2, "50")


def test_nonnegative_estimates_add_up_to_the_unbiased_total(local: LocalOffice) -> None:
    wide = [{"name": "city", "epsilon": 2, "width": 1}]
    file = local.answered(np.full(20_000, 10.0), protocol="shp", consumers=wide)
    (release,) = publish(local, file, protocol="shp", consumers=wide, nonnegative=True)
    table = pq.read_table(release.path / "histogram.parquet")
    shown, unbiased = (table.column(name).to_numpy() for name in ("estimate", "unbiased_estimate"))
    assert unbiased.min() < 0 <= shown.min()
    assert math.isclose(shown.sum(), unbiased.sum(), rel_tol=1e-12)


def test_every_consumers_law_is_that_of_the_contract(local: LocalOffice) -> None:
    made = publish(local, local.answered(AGES))
    assert [release.audit["atoms"] for release in made] == [[1, 1, 2, 1], [3, 2]]
    p, q = 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))
    law = {"alpha": 400 * q * (1 - q) / (p - q) ** 2, "beta": 0, "gamma": 0, "delta": 0, "step": 1 / (p - q)}
    for release in made:
        assert release.audit["report_law"] == pytest.approx(law, abs=1e-9)
        assert (release.audit["model"], release.audit["ledger"], release.audit["account"]) == ("local", None, None)
        assert release.audit["charges"] == [{"step": "reports", "epsilon": "2", "noise_scale": None}]
        assert release.audit["reports"] == {
            "accepted": 400,
            "values": 400,
            "refused": {"unreadable": 0, "other question": 0, "wrong length": 0, "malformed": 0, "duplicate": 0},
        }


@pytest.mark.slow
def test_the_same_reports_give_the_same_bytes_and_more_need_a_reason(local: LocalOffice) -> None:
    first, late = local.answered(AGES), local.reports(question_of(local.declared()), [5.0], "late.parquet")
    assert [release.replayed for release in publish(local, first)] == [False, False]
    before = local.files()
    assert [release.replayed for release in publish(local, first)] == [True, True]
    with pytest.raises(
        Refused, check=coded("reports_changed"), match="dphist local publish SPEC --revise --reason TEXT"
    ):
        publish(local, first, late)
    with pytest.raises(Refused, check=coded("reports_changed")):
        publish(local, first, nonnegative=True)
    assert local.files() == before
    made = publish(local, first, late, reason="late reports")
    assert [(release.audit["revision"], release.audit["reason"]) for release in made] == [(2, "late reports")] * 2
    for reason in ("late reports", ""):
        again = publish(local, first, late, reason=reason)
        assert [(release.audit["revision"], release.replayed) for release in again] == [(2, True)] * 2
    with pytest.raises(Refused, check=coded("reports_changed")):
        publish(local, first, reason="late reports")
    assert {name: local.files()[name] for name in before} == before
    assert [release.audit["revision"] for release in publish(local, first, reason="and back")] == [3, 3]


@pytest.mark.slow
def test_two_revisions_at_the_same_time_are_two_revisions(local: LocalOffice, monkeypatch: pytest.MonkeyPatch) -> None:
    file = local.answered(AGES)
    publish(local, file)
    real = publisher.move_into_place
    theirs = Thread(target=publish, args=(local, file), kwargs={"reason": "theirs"})

    def meanwhile(staging: Path, path: Path) -> bool:
        monkeypatch.setattr(publisher, "move_into_place", real)
        theirs.start()
        theirs.join(1)
        return real(staging, path)

    monkeypatch.setattr(publisher, "move_into_place", meanwhile)
    made = publish(local, file, reason="ours")
    theirs.join()
    assert [(release.audit["reason"], release.replayed) for release in made] == [("ours", False)] * 2
    assert [local.audit("ages_city", revision=number)["reason"] for number in (1, 2, 3)] == ["", "ours", "theirs"]
    assert {local.audit("ages_state", revision=number)["reason"] for number in (2, 3)} == {"ours", "theirs"}


@pytest.mark.slow
def test_the_order_of_files_and_a_title_change_nothing(local: LocalOffice) -> None:
    first, late = local.answered(AGES), local.reports(question_of(local.declared()), [5.0], "late.parquet")
    publish(local, first, late)
    assert all(release.replayed for release in publish(local, late, first, title="Ages", owners=["ann@example.org"]))


@pytest.mark.slow
def test_one_consumer_may_be_published_alone(local: LocalOffice) -> None:
    file = local.answered(AGES)
    assert [release.audit["release"] for release in publish(local, file, only="state")] == ["ages_state"]
    assert [release.replayed for release in publish(local, file)] == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize("reason", ["", "again"])
def test_who_is_killed_between_two_consumers_is_finished_by_the_same_command(local: LocalOffice, reason: str) -> None:
    file = local.answered(AGES)
    publish(local, file)
    local.declared(round="2026-01-05")
    changes: dict[str, Any] = {} if reason else {"round": "2026-01-05"}
    if not reason:
        file = local.answered(AGES, "round.parquet", **changes)
    child = os.fork()
    if child == 0:
        real = publisher.write_release
        left = [1]

        def killed(*words: Any) -> None:
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left.pop()
            real(*words)

        publisher.write_release = killed
        publish(local, file, reason=reason, **changes)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    made = publish(local, file, reason=reason, **changes)
    assert [release.replayed for release in made] == [True, False]
    assert {release.audit["revision"] for release in made} == {2 if reason else 1}
    assert not any((local.store.confidential / "runs").rglob("*"))


def test_nobody_who_answered_is_said_with_what_was_refused(local: LocalOffice) -> None:
    spec = local.declared()
    with pytest.raises(Refused, check=coded("no_reports"), match=r"no report to the question of 'ages'\. Look whether"):
        count_reports(spec, [])
    other = local.reports(Question("wages", question_of(spec).parts), AGES)
    with pytest.raises(Refused, check=coded("no_reports"), match=r"\(refused: 2 unreadable, 405 other question\)"):
        count_reports(spec, [other], {"unreadable": 2, "other question": 5})


@pytest.mark.slow
def test_a_withdrawn_collection_is_marked_and_published_only_by_a_revision(local: LocalOffice) -> None:
    file = local.answered(AGES)
    publish(local, file)
    publish(local, file, reason="once more")
    folders = verbs.withdraw(local.store, "ages_city", "all", "a wrong question")
    assert [folder.name for folder in folders] == ["revision=1", "revision=2"] and all(
        PublishedFolder(folder).is_marked_withdrawn() for folder in folders
    )
    before = local.files()
    assert verbs.withdraw(local.store, "ages_city", "all", "a wrong question") == folders
    with pytest.raises(Refused, check=coded("withdrawn_otherwise"), match=r"'a wrong question'\. It stands once"):
        verbs.withdraw(local.store, "ages_city", "all", "another reason")
    for reason in ("", "once more"):
        with pytest.raises(Halted, check=coded("consumers_withdrawn"), match="a wrong question") as refused:
            publish(local, file, reason=reason)
        told = vars(refused.value)
        assert (told["withdrawn"], told["published"]) == (["ages_city"], ["ages_state"])
    assert local.files() == before
    with pytest.raises(Refused, check=coded("publication_withdrawn")):
        audit_in_force(folders[1])
    made = publish(local, file, reason="the right one")
    assert [(release.audit["release"], release.audit["revision"]) for release in made] == [
        ("ages_city", 3),
        ("ages_state", 3),
    ]
    assert audit_in_force(made[0].path)["cells"] == 4
    assert len(verbs.withdraw(local.store, "ages_city", "all", "wrong as well")) == 3
    assert local.audit("ages_city")["withdrawn"]["reason"] == "a wrong question"
    assert local.audit("ages_city", revision=3)["withdrawn"]["reason"] == "wrong as well"


@pytest.mark.slow
def test_of_a_withdrawn_consumer_the_others_are_published_and_told_apart(local: LocalOffice) -> None:
    file = local.answered(AGES)
    publish(local, file, only="city")
    verbs.withdraw(local.store, "ages_city", "all", "wrong edges")
    with pytest.raises(
        Halted, check=coded("consumers_withdrawn"), match="Not published anew: ages_city; published: ages_state"
    ) as refused:
        publish(local, file)
    assert "dphist local publish SPEC --revise --reason TEXT" in str(refused.value)
    (state,) = publish(local, file, only="state")
    assert state.replayed
    with pytest.raises(Halted, check=coded("consumers_withdrawn"), match="published: none"):
        publish(local, file, only="city")


@pytest.mark.parametrize("reason", ["", "  ", "x" * 3000, "\ud800"])
def test_reasons_are_texts(local: LocalOffice, reason: str) -> None:
    file = local.answered(AGES)
    publish(local, file)
    before = local.files()
    with pytest.raises(DphistError):
        verbs.withdraw(local.store, "ages_city", "all", reason)
    if reason:
        with pytest.raises(DphistError):
            publish(local, file, reason=reason)
    assert local.files() == before


def test_a_damaged_publication_of_the_local_model_is_withdrawn_and_stops_no_other(local: LocalOffice) -> None:
    file = local.answered(AGES)
    publish(local, file)
    folder = local.store.published(Key("ages_city", "all", 1))
    (folder / "histogram.parquet").write_bytes(b"PAR1")
    assert verbs.withdraw(local.store, "ages_city", "all", "wrong") == []
    assert not folder.exists() and [*folder.parent.glob("damaged_revision=1_*")]
    publish(local, file, reason="again")
    assert folder.is_dir() or folder.with_name("revision=2").is_dir()


def test_a_withdrawal_that_is_repeated_keeps_what_it_said(local: LocalOffice, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(local, local.answered(AGES))
    verbs.withdraw(local.store, "ages_city", "all", "wrong")
    said = local.audit("ages_city")["withdrawn"]
    monkeypatch.setattr(approvals, "utc_now", lambda: "2126-01-01T00:00:00Z")
    verbs.withdraw(local.store, "ages_city", "all", "wrong")
    assert local.audit("ages_city")["withdrawn"] == said


@pytest.mark.slow
@pytest.mark.parametrize("round_", ["all", "2026-01-05"])
def test_a_collection_takes_no_name_of_a_release(local: LocalOffice, round_: str) -> None:
    local.funded().write_spec(release="ages_state")
    local.office.released()
    before = local.files()
    with pytest.raises(Halted, check=coded("name_taken"), match="'ages_state' belongs to something else"):
        publish(local, local.answered(AGES, round=round_), round=round_)
    assert local.files() == before
    assert local.office.released().code == 0


@pytest.mark.slow
def test_a_collection_takes_no_name_of_a_release_that_waits(local: LocalOffice) -> None:
    local.funded().write_spec(release="ages_state", publish="manual")
    local.office.release()
    with pytest.raises(Halted, check=coded("name_taken")):
        publish(local, local.answered(AGES))


@pytest.mark.slow
@pytest.mark.parametrize("round_", ["all", "2026-01-05"])
def test_a_release_takes_no_name_of_a_collection_and_spends_nothing(local: LocalOffice, round_: str) -> None:
    publish(local, local.answered(AGES, round=round_), round=round_)
    local.funded().write_spec(release="ages_state")
    before = local.files(), local.office.entries()
    with pytest.raises(Halted, check=coded("name_taken"), match="This call published and spent nothing"):
        verbs.release(ReleaseSpec.load(local.folder / "spec.yaml"), local.store)
    assert (local.files(), local.office.entries()) == before


def test_two_collections_may_not_meet_in_one_name(local: LocalOffice) -> None:
    publish(
        local,
        local.answered(AGES, consumers=[{"name": "old_city", "epsilon": 2, "width": 50}]),
        consumers=[{"name": "old_city", "epsilon": 2, "width": 50}],
    )
    changes = {"collection": "ages_old", "consumers": [{"name": "city", "epsilon": 2, "width": 50}]}
    with pytest.raises(Halted, check=coded("name_taken"), match="'ages_old_city'"):
        publish(local, local.answered(AGES, **changes), **changes)


@pytest.mark.slow
def test_every_round_asks_anew_and_is_a_period(local: LocalOffice) -> None:
    first, second = ({"round": f"2026-01-{day}"} for day in ("05", "12"))
    file = local.answered(AGES, **first)
    publish(local, file, **first)
    with pytest.raises(Refused, check=coded("no_reports"), match="400 other question"):
        publish(local, file, **second)
    made = publish(local, local.answered(AGES, "b.parquet", **second), **second)
    assert [release.audit["period"] for release in made] == ["2026-01-12"] * 2
    assert Fraction(made[0].audit["epsilon"]) == 2
