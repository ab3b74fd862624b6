"""A consumer who comes after the reports: served by them where they can, and else named as what makes them useless."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from error_codes import coded
from local_office import COLLECTION, LocalOffice
from office import Office

from dphist_pipeline.errors import Refused
from dphist_pipeline.local.partition import question_of
from dphist_pipeline.local.reports import questions_named
from dphist_pipeline.local.rounds import ask

AGES = np.arange(400) % 100
CITY, STATE = COLLECTION["consumers"]
COARSE = {"name": "late", "epsilon": 5, "edges": [0, 50, 100]}


@pytest.fixture
def local(office: Office) -> LocalOffice:
    return LocalOffice(office)


def with_late(late: dict[str, Any]) -> list[dict[str, Any]]:
    return [CITY, STATE, late]


@pytest.mark.slow
def test_a_late_consumer_is_served_by_reports_that_exist(local: LocalOffice) -> None:
    local.answered(AGES)
    local.published("reports/a.parquet")
    local.declared(consumers=with_late(COARSE))
    refused = local.publish("reports/a.parquet")
    assert refused.code == 1 and "--revise" in refused.err
    made = local.published("reports/a.parquet", "--revise", "--reason", "a new reader", "--json").json
    assert {one["release"]: one["revision"] for one in made["releases"]} == {
        "ages_city": 2,
        "ages_state": 2,
        "ages_late": 1,
    }
    assert made["accepted"] == 400
    # Nobody was asked again, and the others' numbers stay.
    assert local.audit("ages_city")["values_digest"] == local.audit("ages_city", revision=2)["values_digest"]
    assert local.audit("ages_late")["question_digest"] == local.audit("ages_city")["question_digest"]


@pytest.mark.parametrize(
    ("late", "says"),
    [
        (
            {**COARSE, "edges": [0, 18, 30, 100]},
            "boundaries 18, 30 are not among theirs, which are 0, 25, 50, 65, 75, 100",
        ),
        ({**COARSE, "epsilon": 1}, "epsilon 1 is less than the 2 that they spent"),
    ],
)
def test_a_consumer_who_makes_the_reports_useless_is_named(local: LocalOffice, late: dict[str, Any], says: str) -> None:
    local.answered(AGES)
    local.declared(consumers=with_late(late))
    ran = local.publish("reports/a.parquet")
    assert (ran.code, ran.out) == (1, "")
    assert "(refused: 400 other question). The reports are to the question without consumer 'late'" in ran.err
    assert says in ran.err and "or ask anew in another `round`, which costs contributors epsilon anew" in ran.err


@pytest.mark.slow
def test_several_late_consumers_are_named_together(local: LocalOffice) -> None:
    local.answered(AGES, consumers=[CITY])
    local.declared(consumers=[CITY, {**STATE, "edges": [0, 10, 100]}, {**COARSE, "edges": [0, 11, 100]}])
    assert "without consumers 'state', 'late', by `encoding: symmetric`" in local.publish("reports/a.parquet").err


def test_a_consumer_who_came_late_need_not_be_the_last(local: LocalOffice) -> None:
    local.answered(AGES)
    local.declared(consumers=[CITY, {**COARSE, "edges": [0, 11, 100]}, STATE])
    assert "without consumer 'late'" in local.publish("reports/a.parquet").err


FEW = [{"name": "city", "epsilon": 1, "bins": 10}]
WHOLE = {"name": "late", "epsilon": 1, "edges": [0, 100]}


@pytest.mark.slow
def test_an_encoding_that_auto_changes_for_a_late_consumer_is_told_and_mends_it(local: LocalOffice) -> None:
    local.answered(AGES, encoding="auto", consumers=FEW)
    local.declared(encoding="auto", consumers=[*FEW, WHOLE])
    refused = local.publish("reports/a.parquet").err
    assert "The reports are to this question by `encoding: optimized`: declare that, and they count." in refused
    local.declared(encoding="optimized", consumers=[*FEW, WHOLE])
    assert local.published("reports/a.parquet", "--json").json["accepted"] == 400


@pytest.mark.parametrize(("asked", "now"), [("symmetric", "grr"), ("optimized", "grr"), ("grr", "symmetric")])
def test_another_encoding_than_that_of_the_reports_is_told(local: LocalOffice, asked: str, now: str) -> None:
    local.answered(AGES, encoding=asked, consumers=FEW)
    local.declared(encoding=now, consumers=FEW)
    assert f"by `encoding: {asked}`: declare that, and they count" in local.publish("reports/a.parquet").err


@pytest.mark.slow
def test_split_budget_serves_no_late_consumer_and_says_so(local: LocalOffice) -> None:
    local.answered(AGES, protocol="split_budget")
    local.declared(protocol="split_budget", consumers=with_late(COARSE))
    assert "under split_budget every consumer has a vector of its own" in local.publish("reports/a.parquet").err


@pytest.mark.slow
def test_reports_to_a_question_that_no_late_consumer_explains_are_told_as_before(local: LocalOffice) -> None:
    local.answered(AGES, collection="wages")
    local.declared()
    assert "Look whether contributors were given this question" in local.publish("reports/a.parquet").err


def test_a_round_that_was_asked_names_the_consumer_who_would_change_it(local: LocalOffice) -> None:
    ask(local.declared(), local.store)
    with pytest.raises(
        Refused, check=coded("asked_otherwise"), match=r"without consumer 'late'.* boundaries 11 are not among theirs"
    ):
        ask(local.declared(consumers=with_late({**COARSE, "edges": [0, 11, 100]})), local.store)
    served = ask(local.declared(consumers=with_late(COARSE)), local.store)
    assert served.digest == question_of(local.declared()).digest


def test_questions_are_read_from_any_file_of_reports_a_hundred_at_most(local: LocalOffice) -> None:
    names = [None, "", "a" * 16, "b" * 16, "c" * 17, "d" * 5_000_000, "\x00" * 16]
    columns = {"question": names, "report_id": [b"i" * 16] * 7, "report": [b"r"] * 7}
    odd, many = local.folder / "odd.parquet", local.folder / "many.parquet"
    pq.write_table(pa.table(columns), odd)
    assert questions_named([odd]) == {"a" * 16, "b" * 16, "\x00" * 16}
    columns = {"question": [f"{number:016x}" for number in range(5_000)]} | {
        name: [b"i" * 16] * 5_000 for name in ("report_id", "report")
    }
    pq.write_table(pa.table(columns), many)
    assert len(questions_named([many, odd])) == 100
