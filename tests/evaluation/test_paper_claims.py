"""The list of the papers' claims, the cards and the documentation say what the studies found, of today's mechanisms."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import dphist_pipeline as dph

PROJECT = Path(__file__).resolve().parents[2]
PAPERS = {"sreb_gca": "SReB_GCA", "cnfg": "CNFG", "dphr": "DPHR", "dpcube": "DPCube"}


@pytest.fixture
def study() -> Iterator[dict[str, ModuleType]]:
    """The modules of the studies, which are scripts and no package."""
    # A study has the name of a folder of tests, which may be known by it.
    folder = sys.modules.pop("local", None)
    kept, known = sys.path.copy(), set(sys.modules)
    sys.path[:0] = [str(PROJECT / part) for part in ("benchmarks/papers", "benchmarks", "docs")]
    yield _Modules()
    sys.path[:] = kept
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith((f"{PROJECT}/bench", f"{PROJECT}/docs")):
            del sys.modules[name]
    if folder is not None:
        sys.modules["local"] = folder


class _Modules(dict[str, ModuleType]):
    def __missing__(self, name: str) -> ModuleType:
        return __import__(name)


def test_the_list_says_what_the_kept_studies_found(study):
    listed, found = study["listed"], study["kept"].studies()
    assert listed.judged(listed.items(), found) == listed.items()


def test_a_claim_that_fails_once_takes_a_status_from_held(study):
    listed, report = study["listed"], study["report"]
    item = listed.Item("a paper", "Figure 9", "held", "computed", "a_study")
    claims = [
        {"where": where, "says": "less", "private": vars(report.Verdict(*answers)), "figures": "", "note": ""}
        for where, answers in (("Figure 9 (a)", (2, 1, 0)), ("(Figure 9)", (0, 5, 0)), ("Figure 90", (0, 7, 0)))
    ]
    found = {"a_study": {"claims": claims, "measured": "2026-11-24", "data": "invented"}}
    (judged,) = listed.judged([item], found)
    assert judged == replace(item, status="held in part", measured="2026-11-24", data="invented", claims=judged.claims)
    assert [(one.verdict, one.beside) for one in judged.claims] == [("in part: 2 of 3", False), ("fails: 0 of 5", True)]
    claims[0]["private"] = vars(report.Verdict(0, 0, 3))
    assert listed.judged([item], found)[0].status == "not held"


def test_each_reason_was_written_for_what_the_study_found(study):
    listed = study["listed"]
    assert listed.unread(listed.items()) == [], "read these reasons in listed.json, then `reproduce.py --read ITEM`"


def test_a_reason_is_read_again_when_another_claim_holds_not_for_other_figures(study):
    listed = study["listed"]
    claim = listed.Found("less", "holds: 3 of 3", "0.5 times")
    (item,) = listed.reread(
        [listed.Item("a paper", "Figure 9", "held", "why", claims=(claim,))], ["Figure 9 of a paper"]
    )
    for other, names in (
        (replace(claim, verdict="holds: 4 of 4", figures="0.6 times"), []),
        (replace(claim, verdict="in part: 3 of 4"), ["Figure 9 of a paper"]),
    ):
        assert listed.unread([replace(item, claims=(other,))]) == names


def test_every_study_is_kept_and_measured_the_mechanisms_that_are_here(study):
    kept = study["kept"]
    found = kept.studies()
    assert {item.study for item in study["listed"].items() if item.study} == set(found)
    old = {
        (name, mechanism)
        for name, facts in found.items()
        for mechanism, code in facts["mechanisms"].items()
        if kept.code_of(mechanism) != code
    }
    assert old == set(), "run `python benchmarks/papers/reproduce.py --keep` with these studies"


def test_other_words_and_folders_do_not_make_a_study_old_and_another_line_does(study, tmp_path, monkeypatch):
    kept = study["kept"]
    path = kept._path("dphist_pipeline.mechanisms.ahp")
    text, before = path.read_text(encoding="utf-8"), kept.code_of("ahp")
    for old, new, same in (
        ('"""AHP: order', '"""AHP: sort', True),
        ('"the part of epsilon', '"that part of epsilon', True),
        ("from dphist_pipeline.estimates.budget", "from dphist_pipeline.elsewhere", True),
        ("Fraction(17, 20)", "Fraction(1, 2)", False),
    ):
        assert text.count(old) == 1
        (tmp_path / "ahp.py").write_text(text.replace(old, new), encoding="utf-8")
        with monkeypatch.context() as patched:
            patched.setattr(kept, "_path", with_another(kept._path, path, tmp_path / "ahp.py"))
            assert (kept.code_of("ahp") == before) is same, new


def with_another(paths: Callable[[str], Path], old: Path, new: Path) -> Callable[[str], Path]:
    return lambda module: new if paths(module) == old else paths(module)


@pytest.mark.parametrize("mechanism", PAPERS)
def test_a_card_says_which_claims_of_its_paper_hold(study, mechanism):
    said = " ".join(dph.mechanisms()[mechanism].split())
    assert study["listed"].sentence(PAPERS[mechanism]) in said


def test_the_picture_of_classifiers_draws_what_was_kept(study):
    drawn = study["kept"].studies()["classification"]["drawn"]["figure 17"]
    pictures = study["use_pictures"]
    assert pictures.svg_of(pictures.classifier(drawn)) == (PROJECT / "docs/pictures/use_classifier.svg").read_text()


def test_the_page_has_a_row_for_every_claim_of_a_table_or_figure(study):
    page = study["claims_page"].paper_claims()
    for item in study["listed"].items():
        if item.name.startswith(("Table", "Figure")) and item.claims:
            assert f"| **{item.name}** | **{item.status}**" in page
            for claim in item.claims:
                assert f"| {claim.says}" in page and claim.verdict in page
    assert json.loads((PROJECT / "docs/measured/papers.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("options", [["--keep", "linkage"], ["--keep", "sreb_gca"], ["--quick", "linkage"]])
def test_a_study_without_its_data_is_refused_and_writes_nothing(study, options, tmp_path, monkeypatch):
    kept, written = study["kept"], tmp_path / "papers.json"
    written.write_bytes(kept.KEPT.read_bytes())
    monkeypatch.setattr(kept, "KEPT", written)
    monkeypatch.setattr(study["listed"], "LIST", tmp_path / "listed.json")
    monkeypatch.setattr(study["public_data"], "DATA", tmp_path)
    monkeypatch.setattr(study["reproduce"], "PROJECT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["reproduce.py", *options])
    with pytest.raises(SystemExit, match=rf"{options[-1]} lacks .*\.parquet.*DPHIST_DATA"):
        study["reproduce"].main()
    assert [path.name for path in tmp_path.iterdir()] == ["papers.json"]
    assert json.loads(written.read_text()) == json.loads((PROJECT / "docs/measured/papers.json").read_text())


def test_a_section_without_claims_never_takes_the_place_of_a_kept_one(study, tmp_path, monkeypatch):
    monkeypatch.setattr(study["kept"], "KEPT", tmp_path / "papers.json")
    with pytest.raises(ValueError, match="linkage found nothing to keep"):
        study["kept"].keep("linkage", study["report"].Section("a paper", "no data", []), "2026-11-24", quick=False)
    assert list(tmp_path.iterdir()) == []
