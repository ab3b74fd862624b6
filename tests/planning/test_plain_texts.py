"""Texts for lawyers, ethics boards and the press: their numbers follow from the spec, whose words change nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

import pytest
from office import Office

from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.publishing.formatting import likelihood_ratio
from dphist_pipeline.workbench.planning.plain_texts import Reader, least_told, odds


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "least"), [("1/2", 4, 37), ("1/2", 2, 19), ("1", 1, 5), ("20", 1, 1)]
)
def test_the_least_count_that_is_told_from_none_has_one_error_in_twenty(
    epsilon: str, sensitivity: int, least: int
) -> None:
    assert least_told(Fraction(epsilon), sensitivity) == least
    decay = 2.718281828459045 ** (-float(Fraction(epsilon)) / sensitivity)
    reach = (least + 1) // 2
    assert decay**reach / (1 + decay) <= 0.05 < decay ** (reach - 1) / (1 + decay) or reach == 1
    assert noise_law(sensitivity / Fraction(epsilon)).variance == pytest.approx(2 * decay / (1 - decay) ** 2)


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [("1/2", "at most 1.65 times"), ("1", "at most 2.72 times"), ("10", "at most 22,027 times"), ("20", "no bound")],
)
def test_odds_are_rounded_up(epsilon: str, said: str) -> None:
    assert odds(Fraction(epsilon)).startswith(said)
    assert said == "no bound" or said == f"at most {likelihood_ratio(Fraction(epsilon))} times"


@pytest.mark.parametrize("reader", get_args(Reader))
def test_every_reader_gets_the_numbers_of_the_spec(office: Office, reader: str) -> None:
    office.write_spec(epsilon="1/2", max_rows_per_unit=4)
    ran = office.run("explain", "spec.yaml", "--for", reader)
    text = " ".join(ran.out.split())
    assert ran.code == 0 and "One cell below 37 is not reliably told" in text and "at most 2.72 times" in text
    assert "This limit is one of the true count, and allows for both errors." in text
    # Everybody is told both, each with its question.
    assert "no suppression" in text and "at most 1.65 times" in text
    if reader == "press":
        assert "odds that a patient is in the source by at most 1.65 times" in text
        assert "known to be in it has one value or another by at most 2.72 times" in text
    assert "At most 4 records of each patient are counted" in text
    assert max(map(len, (line for line in ran.out.splitlines() if line[:1] not in "|#"))) <= 100


def test_an_accounts_total_bounds_what_is_said_of_all(office: Office) -> None:
    office.opened().write_spec(epsilon="1/2", period="week", period_column="day")
    told = office.run("explain", "spec.yaml", "--for", "legal", "--json").json
    assert told["odds_in_all"] == odds(Fraction(told["total"])) and told["odds_in_all"] in told["text"]
    assert (told["odds_in_a_year"] is None) == (Fraction(told["total"]) < 53 * Fraction(1, 2))


def test_nobody_known_to_be_in_the_source_is_told_twice_the_odds(office: Office) -> None:
    office.write_spec(epsilon="1/2", neighbours="substitute")
    told = office.run("explain", "spec.yaml", "--for", "legal", "--json").json
    assert told["odds_between_values"] == told["odds"] == "at most 1.65 times"
    assert "Who is in the source is not protected." in told["text"]


def test_words_of_a_spec_end_no_cell_no_code_and_no_line(office: Office) -> None:
    office.write_spec(title="Visits | <b>of</b> # all `x`")
    text = office.run("explain", "spec.yaml", "--for", "legal").out
    assert "Visits \\| &lt;b>of&lt;/b>" in text and "`x`" not in text


def test_a_lawyer_reads_that_an_operator_may_look_at_exact_numbers(office: Office) -> None:
    office.write_spec()
    text = " ".join(office.run("explain", "spec.yaml", "--for", "legal").out.split())
    assert "an operator may look at exact numbers of the records (`dphist look`)" in text
    assert "every later card of the account says so. What that operator decides by them is covered by no ε." in text


def test_where_every_row_is_a_unit_no_bound_and_no_unit_are_spoken_of(office: Office) -> None:
    office.write_spec(epsilon="1/2", privacy_unit="row", max_rows_per_unit=...)
    text = office.run("explain", "spec.yaml", "--for", "legal").out
    assert "\n\n## Who is protected, and from what\n\nProtected is each record: whether it is" in text
    assert "At most" not in text.partition("## Who")[0] and "of each" not in text.partition("## For a data")[2]


def test_words_for_people_stand_beside_the_column_that_is_protected(office: Office) -> None:
    office.write_spec(unit_label="sick_person", counted="visits")
    text = " ".join(office.run("explain", "spec.yaml", "--for", "legal").out.split())
    assert (
        "each sick\\_person (all records with one value of the column `patient`)" in text
        and "Counts of visits in" in text
    )
