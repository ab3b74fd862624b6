"""Settings of mechanisms: each is described once; cards, command, JSON and reference show defaults and the papers'."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from office import Office

from dphist_pipeline import mechanisms
from dphist_pipeline.mechanisms import SAME

PROJECT = Path(__file__).resolve().parents[2]
MEASURED = json.loads((PROJECT / "docs/measured/default_settings.json").read_text(encoding="utf-8"))["settings"]
SETTINGS = [(name, told) for name in mechanisms.names() for told in mechanisms.settings(name)]
IDS = [f"{name} {told.name}" for name, told in SETTINGS]


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("name", mechanisms.names())
def test_every_setting_of_a_mechanism_is_described(name: str) -> None:
    declared = [field.name for field in fields(type(mechanisms.build(name, {})))]
    assert [told.name for told in mechanisms.settings(name)] == declared


@pytest.mark.parametrize(("name", "told"), SETTINGS, ids=IDS)
def test_a_default_that_is_not_the_papers_has_one_sentence_that_says_why(
    name: str, told: mechanisms.ToldSetting
) -> None:
    assert bool(told.why) == (told.paper != SAME)
    assert told.meaning.endswith(".") and (not told.why or told.why.endswith("."))
    assert not re.search(r"\. [A-Z]", told.why)


@pytest.mark.parametrize(("name", "told"), SETTINGS, ids=IDS)
def test_card_and_command_show_default_paper_and_reason(
    name: str, told: mechanisms.ToldSetting, office: Office
) -> None:
    says = f"{told.name}: {told.meaning} Default {told.default}; the paper: {told.paper}."
    card = plain(mechanisms.card(name))
    assert plain(f"{says} {told.why}".strip()) in card
    assert plain(office.run("mechanisms", name).out).strip() == card


@pytest.mark.slow
def test_json_has_every_setting_with_its_default_and_the_papers(office: Office) -> None:
    shown = office.run("mechanisms", "--json").json
    for name in mechanisms.names():
        assert shown[name]["card"] == mechanisms.card(name)
        assert shown[name]["settings"] == [told.facts() for told in mechanisms.settings(name)]
    assert office.run("mechanisms", "ahp", "--json").json == {"ahp": shown["ahp"]}


@pytest.mark.parametrize(("name", "told"), SETTINGS, ids=IDS)
def test_the_reference_has_every_setting_in_a_table(name: str, told: mechanisms.ToldSetting) -> None:
    row = f"| `{told.name}` | {told.default} | {told.paper} | {told.meaning} | {told.why} |"
    assert row in mechanisms.reference(name).replace("\\|", "|")
    assert "Settings:" not in mechanisms.reference(name)


# What sentences say of a study, such as "better in 20 of 30 settings".
COUNTED = re.compile(r"(\d+) of (\d+) settings")


@pytest.mark.parametrize(("name", "told"), SETTINGS, ids=IDS)
def test_figures_in_a_sentence_are_those_of_the_study(name: str, told: mechanisms.ToldSetting) -> None:
    said = {(int(better), int(of)) for better, of in COUNTED.findall(told.meaning + told.why)}
    here = [row for row in MEASURED if row["mechanism"] == name and row["setting"].split(",")[0] == told.name]
    assert said <= {(row["better"], row["of"]) for row in here}


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
]


@pytest.mark.parametrize(("mechanism", "settings", "better"), WORSE)
def test_check_warns_of_defaults_that_stay_although_other_settings_do_better(
    office: Office, mechanism: str, settings: dict[str, str], better: str
) -> None:
    office.opened().write_spec(axes=LINE, mechanism=mechanism, settings=settings)
    assert better in plain(office.run("check", "spec.yaml").out)


@pytest.mark.parametrize(
    ("mechanism", "settings"),
    [("dphr", THIRDS), ("dphr", {}), *(("noise_first", {"penalty": price}) for price in ("auto", "bic", "paper"))],
)
def test_check_warns_of_no_other_settings(office: Office, mechanism: str, settings: dict[str, str]) -> None:
    office.opened().write_spec(axes=LINE, mechanism=mechanism, settings=settings)
    assert "did better" not in plain(office.run("check", "spec.yaml").out)


def test_each_warning_of_defaults_is_what_the_study_found() -> None:
    lost = [row for row in MEASURED if row["mechanism"] == "noise_first" and row["setting"] == "penalty"]
    assert [row["other"] for row in lost] == ["penalty auto"] and 2 * lost[0]["better"] < lost[0]["of"]


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


CHOOSING = [name for name in mechanisms.names() if "`choose`" in mechanisms.card(name)]


@pytest.mark.parametrize("name", CHOOSING)
def test_cards_of_mechanisms_that_choose_name_permute_and_flip(name: str) -> None:
    said = plain(mechanisms.card(name))
    assert "permute-and-flip, but for ties" in said and "in place of the" in said and "exponential mechanism" in said


def test_the_glossary_says_how_a_choice_is_made() -> None:
    glossary = (PROJECT / "docs/explanation/glossary.md").read_text(encoding="utf-8")
    (row,) = [line for line in glossary.splitlines() if line.startswith("| choice |")]
    assert "permute-and-flip" in row and "exponential mechanism" in row
    assert {"dphr", "ihp", "kd_hierarchy", "p_hpartition", "structure_first"} == set(CHOOSING)


def test_the_card_of_cnfg_gives_its_q() -> None:
    said = plain(mechanisms.card("cnfg"))
    assert "Q = SSE + (2k - m)·v" in said and "equation 7, Q = Error + (4k - 2m)/epsilon²" in said
