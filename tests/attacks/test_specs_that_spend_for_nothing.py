"""Specs that are accepted and charged, and whose release must then not fail: nobody would have anything for it."""

from __future__ import annotations

import pytest
from office import AGE, WARD, Office


@pytest.mark.slow
def test_a_family_whose_tables_differ_in_accuracy_by_sixteen_digits(office: Office) -> None:
    office.opened()
    assert office.run("ledger", "raise", "health", "--total", "60", "--reason", "for a test").code == 0
    # What is known of one table drowns in what is not known of the other.
    tables = {"list": [["age", "ward"], ["age"]], "weights": {"age": 1e6}}
    office.write_spec(mechanism="tables", tables=tables, epsilon=50, max_rows_per_unit=1, axes=[AGE, WARD])
    office.released()


def test_a_quality_table_that_leaves_too_little_for_the_noise_of_counts(office: Office) -> None:
    office.opened().write_spec(
        epsilon="0.001", max_rows_per_unit=20, axes=[WARD], quality={"share": "0.999", "rows": 21}
    )
    said = office.release()
    assert said.code == 1 and "too little epsilon is left to the mechanism" in said.err
    assert not [entry for entry in office.entries() if entry[1] == "charged"]
