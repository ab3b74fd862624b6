"""Settings of mechanisms: each is described once; cards, command, JSON and reference show defaults and the papers'."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from office import Office

from dphist_pipeline import mechanisms


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("name", mechanisms.names())
def test_every_setting_of_a_mechanism_is_described(name: str) -> None:
    declared = [field.name for field in fields(type(mechanisms.build(name, {})))]
    assert [told.name for told in mechanisms.settings(name)] == declared


@pytest.mark.slow
def test_json_has_every_setting_with_its_default_and_the_papers(office: Office) -> None:
    shown = office.run("mechanisms", "--json").json
    for name in mechanisms.names():
        assert shown[name]["card"] == mechanisms.card(name)
        assert shown[name]["settings"] == [told.facts() for told in mechanisms.settings(name)]
    assert office.run("mechanisms", "ahp", "--json").json == {"ahp": shown["ahp"]}


def test_a_setting_that_came_later_is_not_told_while_it_has_its_default() -> None:
    assert mechanisms.settings_of(mechanisms.build("sreb_gca", {})) == {"order_share": "1/2"}
    assert mechanisms.settings_of(mechanisms.build("sreb_gca", {"search": "greedy"})) == {"order_share": "1/2"}
    told = mechanisms.settings_of(mechanisms.build("sreb_gca", {"search": "exact"}))
    assert told == {"order_share": "1/2", "search": "exact"}


# Digests by the version before `search` came.
EARLIER = {
    "sreb_gca": "f5e2821bdf3d71290b46e00435bacf7df438a4fd061664751a5fc4b0d532670b",
    "dphr": "543d683fecd64b31b69c38d32aca10f4fe473ff873490c1fc60997cbeb60261e",
}


@pytest.mark.parametrize(("name", "settings"), [("sreb_gca", {}), ("dphr", {"order": "exponential"})])
def test_the_digest_of_a_spec_stays_when_settings_and_descriptions_come(
    name: str, settings: dict[str, str], office: Office
) -> None:
    office.opened().write_spec(mechanism=name, settings=settings)
    assert office.run("check", "spec.yaml", "--json").json["digest"] == EARLIER[name]


# Specs with defaults that stay although other settings do better, and the settings that `check` and `new` name.
THIRDS = {"order": "exponential", "order_share": "1/3", "grouping_share": "1/3"}


LINE = [{"column": "age", "start": 0, "stop": 100, "width": 25}]
WORSE = [
    ("dphr", {"order": "exponential"}, "`settings: {order_share: 1/3, grouping_share: 1/3}`"),
    ("noise_first", {}, "`settings: {penalty: auto}`"),
    ("sreb_gca", {}, "`settings: {search: greedy_problem}`"),
]


@pytest.mark.parametrize(("mechanism", "settings", "better"), WORSE)
def test_check_warns_of_defaults_that_stay_although_other_settings_do_better(
    office: Office, mechanism: str, settings: dict[str, str], better: str
) -> None:
    office.opened().write_spec(axes=LINE, mechanism=mechanism, settings=settings)
    assert better in plain(office.run("check", "spec.yaml").out)


@pytest.mark.parametrize(
    ("mechanism", "settings"),
    [
        ("dphr", THIRDS),
        ("dphr", {}),
        *(("noise_first", {"penalty": price}) for price in ("auto", "bic", "paper")),
        *(("sreb_gca", {"search": search}) for search in ("greedy", "greedy_problem", "exact")),
    ],
)
def test_check_warns_of_no_other_settings(office: Office, mechanism: str, settings: dict[str, str]) -> None:
    office.opened().write_spec(axes=LINE, mechanism=mechanism, settings=settings)
    assert "did better" not in plain(office.run("check", "spec.yaml").out)


def test_the_default_that_check_warns_of_still_stands_in_the_digest() -> None:
    told = mechanisms.settings_of(mechanisms.build("dphr", {"order": "exponential"}))
    assert told == {"order": "exponential", "order_share": "17/20", "grouping_share": None}


def test_a_draft_writes_the_settings_that_do_better(office: Office) -> None:
    assert office.run("new", "wards", "--mechanism", "dphr:order=exponential").code == 0
    drafted = yaml.safe_load(Path("wards.yaml").read_text(encoding="utf-8"))["attributes"]
    assert (drafted["mechanism"], drafted["settings"]) == ("dphr", THIRDS)
    assert office.run("new", "merged", "--mechanism", "noise_first").code == 0
    drafted = yaml.safe_load(Path("merged.yaml").read_text(encoding="utf-8"))["attributes"]
    assert (drafted["mechanism"], drafted["settings"]) == ("noise_first", {"penalty": "auto"})
    assert office.run("new", "priced", "--mechanism", "noise_first:penalty=paper").code == 0
    drafted = yaml.safe_load(Path("priced.yaml").read_text(encoding="utf-8"))["attributes"]
    assert drafted["settings"] == {"penalty": "paper"}
    assert office.run("new", "plain", "--mechanism", "boost").code == 0
    drafted = yaml.safe_load(Path("plain.yaml").read_text(encoding="utf-8"))["attributes"]
    assert drafted["mechanism"] == "boost" and "settings" not in drafted


@pytest.mark.parametrize("written", ["dpfr", "dphr:ordr=noisy", "dphr:order"])
def test_a_draft_refuses_a_mechanism_that_there_is_not(office: Office, written: str) -> None:
    ran = office.run("new", "wards", "--mechanism", written)
    assert ran.code == 1 and ran.err.startswith("error: ") and not Path("wards.yaml").exists()
