"""What names of columns say: a person, an event, or what other people's rows made; `check` warns of it."""

from __future__ import annotations

import pytest
from office import Office

from dphist_pipeline.workbench.planning.unit_names import doubt_of_other_rows, names_event, names_person, unit_doubt


@pytest.mark.parametrize(
    ("name", "person", "event"),
    [
        *((name, True, False) for name in ("patient_no", "PersonID", "member", "household_nr", "Kundennummer", "mrn")),
        *((name, False, True) for name in ("call_id", "caseId", "VISIT_NO", "row_id", "Rechnungsnr", "id_visite")),
        *(
            (name, False, False)
            for name in ("id", "household_size", "user_agent", "row", "calls", "kind", "patient_age")
        ),
    ],
)
def test_names_of_persons_and_of_events_are_told_apart(name: str, person: bool, event: bool) -> None:
    assert (names_person(name), names_event(name)) == (person, event)


@pytest.mark.parametrize(
    ("units", "column", "doubted"),
    [
        *(
            (["person_id"], name, True)
            for name in (
                "household_size",
                "hhSize",
                "FAMILY_TYPE",
                "income_rank",
                "weight",
                "calibrated_weight",
                "PWGTP",
            )
        ),
        *((["row"], name, True) for name in ("household_size", "persons_in_room", "percentile", "siblings")),
        *((["household_id"], name, False) for name in ("household_size", "family_type", "age")),
        (["household_id"], "income_rank", True),
        *(
            (["person_id"], name, False)
            for name in ("age", "birth_weight", "weight_kg", "frankness", "ward", "rankine")
        ),
    ],
)
def test_names_of_what_other_people_s_rows_make_are_doubted(units: list[str], column: str, doubted: bool) -> None:
    doubt = doubt_of_other_rows(units, ["age", column])
    assert doubt.startswith(f"{column}: the name speaks") is doubted and bool(doubt) is doubted


def test_check_says_that_a_unit_has_the_name_of_an_event(office: Office) -> None:
    office.write_attributes_alone(
        source="calls.csv", privacy_unit="call_id", axes=[{"column": "kind", "values": ["a"]}]
    )
    told = office.run("check", "spec.yaml", "--json").json["warnings"]
    assert len(told) == 1 and told[0].startswith("call_id looks like the id of an event or a row: with it as")
    assert unit_doubt(["id"], ["age", "person_id"]) and not unit_doubt(["id"], ["age"])
    assert not unit_doubt(["visit_id", "patient_id"], ["patient_id"])


def test_check_warns_who_counts_persons_by_household(office: Office) -> None:
    axes = [{"column": "family_type", "values": ["a"]}]
    office.write_attributes_alone(source="loans.csv", privacy_unit="card", axes=axes)
    (warning,) = office.run("check", "spec.yaml", "--json").json["warnings"]
    assert warning.startswith("family_type: ") and "one card more or less changes it" in warning
