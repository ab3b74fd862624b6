"""What the macros say to a question that is written wrong: what, where, and how to mend it."""

from __future__ import annotations

from pathlib import Path

import by_hand
import duckdb
import pytest
from answering_scenario import Asked, attached, published_once
from quick_catalogue import build_catalogue

from examples import mostly_soaked

BOX = "the box is a struct or a JSON object, with each axis once, as {'county': '01'}, not "
REFUSED = {
    "dph_box('r.weekly', 'A')": "dph_box: " + BOX + "A",
    "dph_box('r.weekly', '{\"state\": \"A}')": "dph_box: " + BOX + '{"state": "A}',
    "dph_box('r.weekly', ['A'])": "dph_box: " + BOX + "[A]",
    "dph_box('r.weekly', 5)": f"dph_box: {BOX}5",
    "dph_band('r.weekly', box := 'A')": "dph_band: " + BOX + "A",
    "dph_marginal('r.weekly', ['age'], 'A')": "dph_marginal: " + BOX + "A",
    "dph_range('r.weekly', 'age', 0, 18, 'A')": "dph_range: " + BOX + "A",
    "dph_share('r.weekly', 'A')": "dph_share: " + BOX + "A",
    "dph_share('r.weekly', {'state': 'A'}, 'B')": "dph_share: " + BOX + "B",
    "dph_quantile('r.weekly', 'age', 0.5, 'A')": "dph_quantile: " + BOX + "A",
    "dph_compare('r.weekly', '2026-03-02', '2026-03-09', 'A')": "dph_compare: " + BOX + "A",
    "dph_marginal('r.weekly', 'age')": "dph_marginal: the axes are a list of names, as ['age'], not age",
    "dph_quantile('r.weekly', 'age', 'median')": "a quantile lies between 0 and 1, as 0.5 or [0.25, 0.5], not median",
    "dph_quantile('r.weekly', 'age', NULL)": "a quantile lies between 0 and 1, as 0.5 or [0.25, 0.5], not null",
    "dph_quantile('r.weekly', ['age'])": "there is no binned axis [age] in period 2026-03-02; those are age, day",
    "dph_range('r.weekly', ['age'], 0, 18)": "there is no binned axis [age] in period 2026-03-02; those are age, day",
    "dph_range('r.weekly', 'age', [0, 18], NULL)": "axis age takes two ends, low below high, null for an open end",
    "dph_band('r.weekly', 'high')": "the level lies between 0 and 1, as 0.95, not high",
    "dph_band('r.weekly', [0.9])": "the level lies between 0 and 1, as 0.95, not [0.9]",
}


@pytest.fixture(scope="module")
def store() -> Asked:
    return published_once()


@pytest.mark.parametrize(("question", "message"), mostly_soaked(REFUSED.items(), range(0, len(REFUSED), 2)))
def test_an_argument_of_another_kind_is_answered_with_an_example(store: Asked, question: str, message: str) -> None:
    with attached(store.catalogue) as connection:
        for columns in ("*", "count(*)"):
            with pytest.raises(duckdb.Error) as refused:
                connection.execute(f"SELECT {columns} FROM r.{question}").fetchall()
            assert message in str(refused.value)


OTHER = ("{'county': 'other'}", '\'{"county": ["01", "other"]}\'', "{'county': {'not': 'other'}}")


@pytest.mark.parametrize("box", OTHER)
def test_other_as_a_category_is_answered_with_how_to_write_it(store: Asked, box: str) -> None:
    with attached(store.catalogue) as connection:
        with pytest.raises(duckdb.Error, match=r"no category other; it has .*; for the cell of all others write NULL$"):
            connection.execute(f"FROM r.dph_box('r.weekly', {box})").fetchall()
        with pytest.raises(duckdb.Error, match=r"has no category 99; it has .*\d; a value that is none"):
            connection.execute("FROM r.dph_box('r.weekly', {'county': '99'})").fetchall()


@pytest.mark.slow
def test_no_box_and_an_empty_one_are_everything(store: Asked, tmp_path: Path) -> None:
    with attached(store.catalogue) as connection:
        everything = connection.execute("FROM r.dph_total('r.weekly')").fetchall()
        for box in ("NULL", "'{}'", "JSON '{}'"):
            assert connection.execute(f"FROM r.dph_box('r.weekly', {box})").fetchall() == everything


@pytest.mark.slow
def test_columns_that_look_alike_are_not_mixed_up(tmp_path: Path) -> None:
    axes = [{"column": "ward", "values": ["a", "b"]}, {"column": "ward_label", "values": ["x", "y"]}]
    by_hand.publish(tmp_path, by_hand.estimate(axes), axes)
    (tmp_path / "scratch").mkdir()
    with attached(build_catalogue(tmp_path, tmp_path / "scratch")) as connection:
        assert len(connection.execute("FROM r.dph_marginal('r.weekly', ['ward_label'])").fetchall()) == 2
        assert len(connection.execute("FROM r.dph_marginal('r.weekly', ['ward', 'ward_label'])").fetchall()) == 4
        with pytest.raises(duckdb.Error, match="axis ward_label cannot be left out where ward is asked"):
            connection.execute("FROM r.dph_marginal('r.weekly', ['ward'])").fetchall()
