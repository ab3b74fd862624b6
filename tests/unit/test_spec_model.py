"""The fields of a release spec: what is accepted, what is refused, and where the message points."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from error_codes import coded
from spec_scenario import AGE, BASE, VALID, WARD, refusal, spec

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.errors import Refused, did_you_mean
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec import sources
from dphist_pipeline.spec.fields import in_digest, parse_epsilon
from dphist_pipeline.spec.mistakes import SpecError
from dphist_pipeline.spec.model import l1_sensitivity


def test_the_valid_spec_declares_its_grid_its_sensitivity_and_its_defaults() -> None:
    valid = spec()
    assert isinstance(valid.domain, Domain) and valid.domain.shape == (21, 4)
    assert valid.sensitivity == 3 and valid.epsilon == Fraction(1, 2)
    assert (valid.csv_delimiter, valid.csv_quote, valid.time_zone, valid.week_starts) == (",", "", "UTC", "monday")
    assert valid.max_cells == 10_000_000 and valid.release_delay_days == 0
    assert valid.title == "" and valid.owners == () and valid.schedule is None and valid.settings == {}


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        spec().epsilon = Fraction(50)  # type: ignore[misc]


def test_substituting_a_person_moves_twice_as_many_rows_as_removing_one() -> None:
    assert l1_sensitivity(3, "add_remove") == 3 and l1_sensitivity(3, "substitute") == 6
    assert spec(neighbours="replace_one").sensitivity == 6
    with pytest.raises(ValueError):
        l1_sensitivity(0, "add_remove")


@pytest.mark.parametrize("missing", ["release", "source", "privacy_unit", "neighbours", "epsilon"])
def test_fields_without_a_default_are_required_by_name(missing: str) -> None:
    assert "is required" in refusal(**{missing: ...})[missing]


@pytest.mark.parametrize("missing", ["account", "mechanism", "axes", "max_rows_per_unit", "period_column"])
def test_fields_that_privacy_rests_on_are_never_a_silent_default(missing: str) -> None:
    assert "is required" in refusal(**{missing: ...})[missing]


def test_where_every_row_is_a_person_the_bound_is_one() -> None:
    assert spec(privacy_unit="row", max_rows_per_unit=...).max_rows_per_unit == 1
    assert "must be 1" in refusal(privacy_unit="row")["max_rows_per_unit"]


def test_every_mistake_is_reported_at_once_with_its_place() -> None:
    found = refusal(
        release="order",
        epsilon=0,
        mechanism="geometri",
        axes=[{**AGE, "width": 7}, {**WARD, "values": ["a", False]}],
        period="weekly",
        setings={},
    )
    assert set(found) == {
        "release",
        "epsilon",
        "mechanism",
        "axes[0].width",
        "axes[1].values[1]",
        "period",
        "setings",
    }


def test_every_constraint_of_pydantic_is_told_in_our_words() -> None:
    scalars = {
        "title": 5,
        "csv_delimiter": "ab",
        "csv_quote": "x",
        "hive": 1,
        "neighbours": "x",
        "max_rows_per_unit": "3",
    }
    bounds = {"max_cells": 10**9, "release_delay_days": -1, "privacy_unit": [], "owners": ["x"], "schedule": "x"}
    lists = {"settings": [], "unit_normalise": "trim", "axes": [{"column": "x", "values": "a" * 300, "labels": {}}]}
    found = refusal(**scalars, **bounds, **lists, release="x" * 300, account="", time_zone="\ud800", period=None)
    assert len(found) == 19
    for what in found.values():
        assert what.startswith(("must be ", "is ", "has ", "holds ")) and "None" not in what and "Input" not in what
        assert "documentation" not in what and "{" not in what.split(", such as")[0]


@pytest.mark.parametrize(("known", "said"), [(20, "w19."), (21, "w20."), (22, "w19 and 2 more.")])
def test_known_words_are_listed_whole_where_only_one_would_be_left_out(known: int, said: str) -> None:
    assert did_you_mean("zzzzzz", [f"w{number:02}" for number in range(known)]).endswith(said)


def test_a_word_in_other_case_is_meant_before_all_others() -> None:
    assert did_you_mean("ART", ["Art", "ARTS"]) == "Did you mean 'Art'?"


def test_unknown_words_get_a_did_you_mean() -> None:
    assert "Did you mean 'settings'" in refusal(setings={})["setings"]
    assert "Did you mean 'geometric'" in refusal(mechanism="geometri")["mechanism"]
    assert "Did you mean 'week'" in refusal(period="weeks")["period"]
    assert "Did you mean 'above'" in refusal(axes=[{**AGE, "abov": True}])["axes[0].abov"]
    assert "Did you mean 'Europe/Brussels'" in refusal(time_zone="Europe/Brusels")["time_zone"]


@pytest.mark.parametrize("field", ["weight", "weight_column", "sum", "measure"])
def test_weights_and_sums_are_refused_with_what_to_do_instead(field: str) -> None:
    assert "come from an axis with ends" in refusal(**{field: "hours"})[field]
    assert "come from an axis with ends" in refusal(axes=[{**AGE, field: "hours"}])[f"axes[0].{field}"]


@pytest.mark.parametrize("field", ["weights", "targets"])
def test_true_is_no_weight_and_no_target_of_a_table(field: str) -> None:
    wrong = refusal(mechanism="tables", tables={"list": [["age"]], field: {"age": True}})
    assert wrong == {f"tables.{field}.age": "must be a number, not true"}


@pytest.mark.parametrize("field", ["renews"])
def test_fields_of_the_design_that_are_not_built_yet_say_so(field: str) -> None:
    assert "not supported yet" in refusal(**{field: "x"})[field]


def test_a_query_over_the_source_does_not_replace_it() -> None:
    assert set(refusal(source=..., source_sql="x.sql")) == {"source", "source_sql"}


@pytest.mark.parametrize(
    "value", [0, -1, "-1", float("nan"), float("inf"), 1e-300, "1e-300", "abc", "", True, None, 51]
)
def test_an_epsilon_outside_its_range_is_refused(value: object) -> None:
    assert set(refusal(epsilon=value)) == {"epsilon"}


@pytest.mark.parametrize(
    "value", ["1e999999999", "1e-999", "1/0", "0x1", "½", "1_0", "9" * 70, pytest.param(10**5000, id="huge"), [1], {}]
)
def test_an_epsilon_that_is_no_plain_number_is_refused_at_once(value: object) -> None:
    assert set(refusal(epsilon=value)) == {"epsilon"}


def test_epsilon_is_read_by_its_digits() -> None:
    assert spec(epsilon=0.1).epsilon == Fraction(1, 10)
    assert spec(epsilon="1/3").epsilon == Fraction(1, 3)
    assert spec(epsilon="1e-3").epsilon == Fraction(1, 1000)
    assert "quote it" in refusal(epsilon=0.1234567890123456)["epsilon"]
    assert spec(epsilon="0.1234567890123456").epsilon == Fraction(1234567890123456, 10**16)


def test_the_noise_scale_has_an_upper_end() -> None:
    assert spec(epsilon="0.000001", max_rows_per_unit=10).epsilon == Fraction(1, 10**6)
    assert "10^7" in refusal(epsilon="0.000001", max_rows_per_unit=11)["epsilon"]


def test_parsing_an_epsilon_on_its_own_refuses_by_name() -> None:
    assert parse_epsilon("1/3") == Fraction(1, 3)
    with pytest.raises(Refused, check=coded("epsilon_error"), match="epsilon must lie"):
        parse_epsilon(-1)
    with pytest.raises(Refused, check=coded("epsilon_error"), match="epsilon must be a number"):
        parse_epsilon("abc")


@pytest.mark.parametrize(
    ("value", "epsilon"),
    [
        (np.float64(0.5), "1/2"),
        (np.float64(0.1), "1/10"),
        (np.float32(0.5), "1/2"),
        (np.float16(0.1), "0.0999755859375"),
        (np.longdouble(0.5), "1/2"),
        (np.int64(2), "2"),
        (np.uint8(3), "3"),
        (Decimal("0.1"), "1/10"),
        (Decimal("1E-3"), "1/1000"),
        (Fraction(1, 3), "1/3"),
    ],
    ids=repr,
)
def test_numbers_of_numpy_and_decimals_are_read_by_what_they_hold(value: object, epsilon: str) -> None:
    read = parse_epsilon(value)
    assert read == Fraction(epsilon)
    assert type(read.numerator) is type(read.denominator) is int


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (np.float32(0.1), 'more than 15 digits.*"0.10000000149011612"'),
        (np.longdouble("0.1"), "more digits than a double keeps"),
        (np.float64("nan"), "finite number, not nan"),
        (np.float32("inf"), "finite number, not inf"),
        (np.int64(51), "between 10.-6 and 50, not"),
        (np.bool_(True), "must be a number"),
        (np.array([0.5]), "must be a number"),
        (np.complex128(1), "must be a number"),
        (True, "must be a number such as 0.5"),
        (Decimal("NaN"), "must be a number"),
        (Decimal("Infinity"), "must be a number"),
        (Decimal("1E-999999999"), "must be a number|between"),
        (None, "must be a number"),
    ],
    ids=repr,
)
def test_numbers_that_no_release_should_spend_are_refused_clearly(value: object, problem: str) -> None:
    with pytest.raises(Refused, check=coded("epsilon_error"), match=problem):
        parse_epsilon(value)


@pytest.mark.parametrize("field", ["release", "account"])
@pytest.mark.parametrize(
    "name", ["select", "table", "order", "user", "drop", "Health", "a-b", "../x", "a b", "1a", "", "a'b", '"', "<b>"]
)
def test_names_that_need_quotes_somewhere_are_refused(field: str, name: str) -> None:
    assert set(refusal(**{field: name})) == {field}


@pytest.mark.parametrize("name", ["a" * 64, "é", "con\n", 5, None, True, "ci_lower", "revision", "journal"])
def test_other_bad_release_names_are_refused(name: object) -> None:
    assert set(refusal(release=name)) == {"release"}


def test_long_values_are_cut_and_control_characters_escaped_in_messages() -> None:
    message = refusal(release="x" * 150 + "\x1b")["release"] + refusal(mechanism="\x1b[31m" + "y" * 10**6)["mechanism"]
    assert len(message) < 500 and "\x1b" not in message


@pytest.mark.parametrize(
    "source", ["data/x.csv.bz2", "data/", "s3://b/x.parquet", "x.parq", "", "a\nb.csv", 5, None, "\ud800.csv"]
)
def test_sources_that_cannot_be_read_are_refused(source: object) -> None:
    assert set(refusal(source=source)) == {"source"}


def test_a_source_pattern_is_absolute_and_escapes_the_folder_it_starts_from(tmp_path: Path) -> None:
    assert spec().source_pattern == f"{BASE}/data/admissions/*.parquet"
    assert spec(source="/x/*.CSV").source_pattern == "/x/*.CSV" and spec(source="/x/*.CSV").source_format == "csv"
    odd = ReleaseSpec.from_attributes(VALID, tmp_path / "[a]")
    assert odd.source_pattern == f"{tmp_path}/[[]a]/data/admissions/*.parquet" and odd.base == tmp_path / "[a]"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_rows_per_unit", True),
        ("max_rows_per_unit", 0),
        ("max_rows_per_unit", 1.0),
        ("max_rows_per_unit", "3"),
        ("max_cells", 100_000_001),
        ("release_delay_days", -1),
        ("release_delay_days", 10**9),
        ("csv_delimiter", ""),
        ("csv_delimiter", "ab"),
        ("csv_delimiter", '"'),
        ("csv_quote", "x"),
        ("csv_encoding", "ebcdic"),
        ("neighbours", "both"),
        ("period", None),
        ("week_starts", "friday"),
        ("time_zone", "../etc/passwd"),
        ("time_zone", "/etc/localtime"),
        ("time_zone", "localtime"),
        ("time_zone", "America"),
        ("time_zone", "x" * 190),
        ("time_zone", "Zürich"),
        ("schedule", "0 6 * *"),
        ("schedule", "0 6 * * ; rm"),
        ("owners", "me"),
        ("settings", []),
        ("title", "a\x00b"),
        ("privacy_unit", ""),
        ("period_column", 5),
    ],
)
def test_a_value_that_a_field_cannot_take_is_refused_at_that_field(field: str, value: object) -> None:
    assert set(refusal(**{field: value})) == {field}


def test_settings_that_the_mechanism_does_not_have_are_refused_by_the_mechanism() -> None:
    assert "setting 'sharpness'" in refusal(settings={"sharpness": 3})["settings.sharpness"]


def test_a_mechanism_that_cannot_serve_the_spec_is_refused_before_any_data(monkeypatch: pytest.MonkeyPatch) -> None:
    from dphist_pipeline.errors import DphistError
    from dphist_pipeline.mechanisms.geometric import Geometric

    def refuse(self: object, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        raise DphistError(f"cannot serve {domain.shape} at {sensitivity}/{epsilon}")

    monkeypatch.setattr(Geometric, "check", refuse)
    assert refusal() == {"": "cannot serve (21, 4) at 3/1/2"}


def test_a_period_column_is_there_exactly_where_there_are_periods() -> None:
    assert "no use" in refusal(period="none")["period_column"]
    assert spec(period=..., period_column=...).period == "none"


def test_both_spellings_of_one_field_together_are_refused() -> None:
    assert "another spelling" in refusal(neighbors="add_remove")["neighbors"]


def test_attributes_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(SpecError, match="must be a mapping"):
        ReleaseSpec.from_attributes([1], BASE)  # type: ignore[arg-type]


def test_every_field_is_marked_as_part_of_the_digest_or_not() -> None:
    marked = {
        field: in_digest(ReleaseSpec, field) for field in ReleaseSpec.model_fields
    }  # fails for one without a mark
    assert set(spec().as_json()) == set(marked) and {*marked.values()} == {True, False}


def test_a_last_period_before_the_first_one_is_refused() -> None:
    assert spec(first_period="2026-03-02", last_period="2026-03-02").last_period == "2026-03-02"
    assert "before `first_period`" in refusal(first_period="2026-03-02", last_period="2026-02-23")["last_period"]


def test_equivalent_spellings_have_one_digest() -> None:
    same = [
        spec(epsilon="1/2"),
        spec(epsilon="0.50"),
        spec(neighbours=..., neighbors="add_or_remove_one"),
        spec(settings={}, max_cells=10_000_000, time_zone="UTC", csv_delimiter=",", week_starts="monday"),
        spec(quarter_starts="january"),
        spec(axes=[{**AGE, "name": "age", "width": "5.0", "closed": "left", "below": False}, WARD]),
        spec(
            title="Admissions",
            counted="admissions",
            unit_label="patient",
            language="de",
            show_below=10,
            owners=["team:statistics"],
            schedule="0 6 * * MON",
            release_delay_days=7,
        ),
        ReleaseSpec.from_attributes(dict(reversed(VALID.items())), Path("/elsewhere")),
    ]
    assert {other.digest for other in same} == {spec().digest}


@pytest.mark.parametrize(
    "change",
    [
        {"release": "other"},
        {"source": "data/*.csv"},
        {"csv_delimiter": ";"},
        {"csv_quote": '"'},
        {"csv_encoding": "latin-1"},
        {"privacy_unit": "household"},
        {"max_rows_per_unit": 4},
        {"neighbours": "substitute"},
        {"epsilon": 0.6},
        {"account": "other"},
        {"max_cells": 1000},
        {"axes": [AGE]},
        {"axes": [WARD, AGE]},
        {"axes": [{**AGE, "closed": "right"}, WARD]},
        {"axes": [AGE, {**WARD, "values": ["medicine", "surgery", "maternity"]}]},
        {"period": "month"},
        {"period_column": "left_on"},
        {"week_starts": "sunday"},
        {"quarter_starts": "april"},
        {"time_zone": "Europe/Brussels"},
    ],
)
def test_what_changes_the_release_changes_the_digest(change: dict[str, object]) -> None:
    assert spec(**change).digest != spec().digest


def test_the_digest_of_a_spec_never_changes_between_versions() -> None:
    assert spec().digest == "eade66e25ec11d28000c603ebf7a2f09ce67eb8378ace4aa91135982cbc2ffb2"


def test_a_name_of_a_unit_holds_no_comma_which_parts_names_in_the_ledger() -> None:
    with pytest.raises(ValueError, match="holds a comma"):
        sources.privacy_unit(["region,clinic", "patient"])


def test_a_copy_with_other_fields_keeps_nothing_that_was_derived_before() -> None:
    first = spec()
    digest, cells = first.digest, first.domain.cells
    copy = first.model_copy(update={"epsilon": Fraction(1, 4), "axes": first.axes[:1]})
    assert copy.digest == spec(epsilon=0.25, axes=[AGE]).digest != digest
    assert copy.domain.cells < cells and first.digest == digest


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"privacy_unit": "row", "max_rows_per_unit": 1}, "take", "has no use with `privacy_unit: row`"),
        (
            {"axes": [{**WARD, "levels": {"house": ["east", "west", "west"]}}]},
            "take",
            "needs `max_rows_per_unit: 1` with `levels`",
        ),
        ({"mechanism": "tables", "tables": {"all": 1}, "axes": [AGE, WARD]}, "take", "1` with `tables`"),
        ({"engine": "spark"}, "engine", "`take`"),
        ({"take": "one"}, "take", "one_per_cell"),
    ],
)
def test_persons_are_counted_where_cells_can_be_of_persons(changes: Any, field: str, says: str) -> None:
    assert says in refusal(**{"take": "one_per_cell", **changes})[field]


def test_a_spec_that_takes_all_rows_has_the_digest_of_before() -> None:
    assert "take" not in spec().digest_facts and spec(take="all").digest == spec().digest
    assert spec(take="one_per_cell").digest != spec().digest
