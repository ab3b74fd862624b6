"""Variables and loops of a spec: looked up and never run, and what they give is judged like written text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from office import SPEC, Office

from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.loading import MOST_ITEMS
from dphist_pipeline.spec.mistakes import SpecError, WhichSpec

REGIONS = ["north", "east", "south"]
LOOP = {"for_each": {"region": REGIONS}, "release": "wards_{{ region }}", "source": "data/{{ region }}.csv"}


def made(variables: dict[str, object] | None = None, **changes: Any) -> list[ReleaseSpec]:
    attributes = {name: value for name, value in {**SPEC, **changes}.items() if value is not ...}
    return ReleaseSpec.all_of_fields(attributes, Path("/srv"), (), lambda given: None, variables or {})


def refused(variables: dict[str, object] | None = None, **changes: Any) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        made(variables, **changes)
    return {where.removeprefix("attributes."): what for where, what in caught.value.problems}


def test_a_loop_makes_the_specs_that_somebody_would_have_written() -> None:
    specs = made(**LOOP)
    written = [made(release=f"wards_{region}", source=f"data/{region}.csv")[0] for region in REGIONS]
    assert [spec.digest for spec in specs] == [spec.digest for spec in written]
    assert [spec.as_json() for spec in specs] == [spec.as_json() for spec in written]


def test_variables_keep_their_kind_and_are_looked_up_by_key_and_number() -> None:
    variables = {"wards": {"axes": [SPEC["axes"][0]], "rows": [1, 2]}, "epsilon": 0.25, "title": "A {{ b }}"}
    (spec,) = made(
        variables,
        axes="{{ wards.axes }}",
        max_rows_per_unit="{{wards.rows[1]}}",
        epsilon="{{ epsilon }}",
        title="{{epsilon}}!",
    )
    assert (spec.max_rows_per_unit, str(spec.epsilon), spec.title, len(spec.axes)) == (2, "1/4", "0.25!", 1)
    (spec, _) = made(
        for_each={"on": [{"name": "north", "most": 1}, {"name": "east", "most": 3}]},
        release="wards_{{ on.name }}",
        max_rows_per_unit="{{ on.most }}",
    )
    assert spec.max_rows_per_unit == 1


def test_the_environment_reaches_the_source_alone_also_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s3cr3t")
    (spec, *_) = made(**{**LOOP, "source": "{{ env.SECRET }}/{{ region }}.csv"})
    assert spec.source_pattern == "/srv/s3cr3t/north.csv" and "s3cr3t" not in str(spec.as_json())
    for title in ("{{ env.SECRET }}", "{{ region }} {{ env.SECRET }}", "{{ env['SECRET'] }}"):
        assert "is resolved in `source` alone" in refused(**LOOP, title=title)["title"]
    # Nor by a detour over a variable, or over text that two of them make together.
    for variables in ({"a": "{{ env.SECRET }}"}, {"a": "{{ region }}"}):
        assert "holds a template" in refused(variables, title="{{ a }}")["title"]
    assert "holds a template" in refused({"a": "{", "b": "{ env.SECRET }}"}, title="{{ a }}{{ b }}")["title"]


class Spy:
    """An object of a project, none of whose attributes may be reached."""

    secret = "s3cr3t"


@pytest.mark.parametrize(
    ("title", "says"),
    [
        ("{{ regio }}", "there is no variable 'regio'. Did you mean 'region'?"),
        ("{{ region.__class__ }}", "looked up by key or number alone"),
        ("{{ region.name }}", "there is no 'name' in `region.name`"),
        ("{{ region | upper }}", "names no variable"),
        ("{{ region() }}", "names no variable"),
        ("{{ 7 * 7 }}", "names no variable"),
        ("{% for x in region %}{% endfor %}", "names no variable"),
        ("{{ spy.secret }}", "looked up by key or number alone"),
        ("{{ spy }}", "is a Spy, which no file could hold"),
        ("a {{ listed }}", "cannot be a part of a text"),
        ("a {{ no }}", "is false, which cannot be a part of a text; quote it"),
        ("{{ listed[9] }}", "there is no 9 in"),
        ("{{ dated }}", "is a date, which no file could hold"),
        ("{{ keyed }}", "has a key that is not text"),
    ],
)
def test_what_is_no_plain_lookup_is_refused_and_nothing_is_run(title: str, says: str) -> None:
    from datetime import date

    variables = {"spy": Spy(), "listed": [1], "no": False, "dated": date(2026, 1, 1), "keyed": {1: 2}}
    told = refused(variables, **LOOP, title=title)
    assert set(told) == {"title"} and says in told["title"] and "s3cr3t" not in told["title"]


def test_what_a_variable_gives_is_judged_like_written_text() -> None:
    for name, value in (("axes", [{"column": "ward", "values": [False]}]), ("epsilon", "1e9"), ("title", "a\u202eb")):
        assert refused({"x": value}, **{name: "{{ x }}"}) == refused(**{name: value})
    assert refused({"x": "DROP TABLE"}, release="{{ x }}") == refused(release="DROP TABLE")


def test_a_mistake_of_every_item_is_told_once_and_one_of_few_names_them() -> None:
    regions = ["north", "Ea st", "sou\nth"]
    with pytest.raises(SpecError) as caught:
        made(**{**LOOP, "epsilon": 0, "for_each": {"region": regions}})
    problems = [what for where, what in caught.value.problems if where == "attributes.epsilon"]
    assert problems == ["must lie between 10^-6 and 50, not 0"]
    lines = str(caught.value).splitlines()
    assert len(lines) == 1 + len(caught.value.problems)
    assert sum("(where region is 'Ea st')" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("loop", "where", "says"),
    [
        (["north"], "for_each", "must be a mapping of one name to a list"),
        ({"a": ["x"], "b": ["y"]}, "for_each", "must be a mapping of one name to a list"),
        ({"env": ["x"]}, "for_each", "is no name of a variable"),
        ({"a b": ["x"]}, "for_each", "is no name of a variable"),
        ({"taken": ["x"]}, "for_each.taken", "is a variable of the project already"),
        ({"region": "north"}, "for_each.region", "must be a list"),
        ({"region": []}, "for_each.region", "must be a list of at least one item"),
        ({"region": ["x"] * (MOST_ITEMS + 1)}, "for_each.region", "has more than 1,000 items"),
        ({"region": "{{ nowhere }}"}, "for_each.region", "there is no variable 'nowhere'"),
        ({"region": ["a", "a"]}, "release", "is 'wards_a' for two items of `for_each`; write the variable into it"),
    ],
)
def test_a_loop_that_cannot_be_run_is_one_message(loop: object, where: str, says: str) -> None:
    told = refused({"taken": 1}, **{**LOOP, "for_each": loop})
    assert set(told) == {where} and says in told[where]


def test_a_loop_does_not_unfold_without_bound() -> None:
    axes = [{"column": "ward", "values": [f"w{number}" for number in range(2_000)]}]
    many = [f"r{number}" for number in range(MOST_ITEMS)]
    assert (
        "unfolds to more than 1,000,000 values"
        in refused(**{**LOOP, "for_each": {"region": many}, "axes": axes})["for_each"]
    )


@pytest.mark.slow
def test_the_command_line_names_one_release_of_a_file(office: Office) -> None:
    office.opened().write_attributes(json.dumps({**SPEC, **LOOP, "source": SPEC["source"]}))
    file = office.folder / "spec.yaml"
    office.allow("spec.yaml#wards_east")
    checked = office.run("check", file)
    assert checked.code == 0 and "makes 3 valid specs: wards_north, wards_east, wards_south" in checked.out
    assert office.run("check", file, "--json").json == {"releases": [f"wards_{region}" for region in REGIONS]}
    assert [spec.release for spec in ReleaseSpec.load_all(file)] == [f"wards_{region}" for region in REGIONS]
    before = office.state()
    for name, says in (("", "Name one, as in"), ("#wards_west", "Did you mean 'wards_east'")):
        ran = office.run("release", f"{file}{name}")
        assert ran.code == 1 and says in ran.err and office.state() == before
        with pytest.raises(WhichSpec):
            ReleaseSpec.load(f"{file}{name}")
    ran = office.run("release", f"{file}#wards_east")
    assert ran.code == 0 and office.published("wards_east").is_dir()


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    opened = Office(tmp_path / "office")
    monkeypatch.chdir(opened.folder)
    return opened
