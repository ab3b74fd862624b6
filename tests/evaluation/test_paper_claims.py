"""The list of the papers' claims, the cards and the documentation say what the studies found, of today's mechanisms."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from dphist_pipeline import mechanisms, sanitize
from dphist_pipeline.solvers.groups.relative_groups import relative_groups, relative_groups_of_gp
from dphist_pipeline.solvers.groups.segmentation import v_optimal

PROJECT = Path(__file__).resolve().parents[2]


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


@pytest.mark.slow
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


def test_a_claim_beside_a_part_of_a_figure_is_told_there_and_decides_nothing(study):
    listed, report = study["listed"], study["report"]
    item = listed.Item("a paper", "Figure 9", "cannot be judged", "its data are invented", "a_study")
    claim = {"where": "(Figure 9 (a))", "says": "less", "private": vars(report.Verdict(3)), "figures": "", "note": ""}
    found = {"a_study": {"claims": [claim], "measured": "2026-11-24", "data": "invented"}}
    (judged,) = listed.judged([item], found)
    assert judged.status == "cannot be judged"
    assert [(one.where, one.beside) for one in judged.claims] == [("Figure 9 (a)", True)]


def test_a_claim_that_cannot_be_judged_says_why_and_decides_nothing(study):
    listed, report = study["listed"], study["report"]
    item = listed.Item("a paper", "Figure 9", "held", "computed", "a_study")
    claims = [
        vars(report.Claim("Figure 9", "less", None, report.Verdict(3))),
        {
            "where": "Figure 9",
            "says": "below a tree",
            "printed": vars(report.Verdict(4)),
            "private": vars(report.Verdict(0, 4)),
            "figures": "",
            "note": "",
            "unjudged": "its depth is not told",
        },
    ]
    claims[0] |= {"private": vars(claims[0]["private"])}
    found = {"a_study": {"claims": claims, "measured": "2026-11-24", "data": "invented"}}
    (judged,) = listed.judged([item], found)
    assert judged.status == "held"
    assert [(one.verdict, one.printed, one.beside) for one in judged.claims] == [
        ("holds: 3 of 3", "", False),
        ("cannot be judged: its depth is not told; here fails: 0 of 4", "cannot be judged; here holds: 4 of 4", False),
    ]


def test_a_setting_turns_where_a_claim_holds_at_one_value_and_fails_at_another(study):
    verdict = study["report"].Verdict.agreeing([[True, True], [False, False], [True, False, None], [True, None]])
    assert (verdict.holds, verdict.fails, verdict.open, verdict.turns) == (1, 1, 1, 1)
    assert str(verdict) == "in part: 1 of 4, 1 within noise, 1 turning with what is not told"


@pytest.mark.parametrize(
    ("verdict", "status"),
    [((2, 0, 0, 2), "held"), ((1, 0, 0, 2), "held in part"), ((0, 1, 0, 2), "cannot be judged"), ((0, 3), "not held")],
)
def test_what_turns_with_a_setting_that_is_not_told_neither_holds_nor_fails(study, verdict, status):
    assert study["listed"]._status([study["report"].Verdict(*verdict)]) == status


def test_a_card_names_every_part_of_a_figure_in_which_a_claim_fails(study, monkeypatch):
    listed = study["listed"]
    failed = [listed.Found("saves more", "fails: 0 of 5", where=f"Figure 9 ({part})") for part in "ab"]
    held = [listed.Found("falls", "holds: 1 of 1"), listed.Found("grows", "fails: 0 of 1", beside=True)]
    unjudged = listed.Item("a paper", "Figure 3", "cannot be judged", "why", claims=(held[1],))
    told = [listed.Found(f"saves {length}", "fails: 0 of 5", "9" * length) for length in (80, 81)]
    figure = listed.Item("a paper", "Figure 9", "held in part", "why", claims=(*failed, *told, *held))
    monkeypatch.setattr(listed, "items", lambda: [unjudged, figure])
    assert listed.sentence("a paper") == (
        "Of its claims, held in part: figure 9; cannot be judged: figure 3; in no setting: saves more (figure 9 (a), "
        f"figure 9 (b)); saves 80 (figure 9: {'9' * 80}); saves 81 (figure 9) (docs/explanation/measured.md)."
    )


def test_cards_repeat_what_the_list_says_of_claims(study):
    for mechanism, said in study["listed"].cards().items():
        card = re.sub(r"\s+", " ", mechanisms.card(mechanism))
        assert f"Claims: {said}" in card
    assert "Claims:" not in mechanisms.card("geometric")


def test_who_is_interrupted_while_writing_leaves_the_old_list_whole(study, tmp_path, monkeypatch):
    listed = study["listed"]
    every, old = listed.items(), tmp_path / "listed.json"
    old.write_bytes(listed.LIST.read_bytes())
    monkeypatch.setattr(listed, "LIST", old)
    monkeypatch.setattr(listed, "CARDS", tmp_path / "claims.json")

    def interrupted(path, text, **options):
        with path.open("w", encoding="utf-8") as file:
            file.write(text[:100])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "write_text", interrupted)
        listed.write(every[1:])
    assert listed.items() == every
    listed.write(every[1:])
    assert listed.items() == every[1:]


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


@pytest.mark.slow
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


def test_the_time_of_a_study_is_noted_beside_what_it_found(study, tmp_path, monkeypatch):
    kept, report, path = study["kept"], study["report"], tmp_path / "papers.json"
    monkeypatch.setattr(kept, "KEPT", path)
    claims = [report.Claim("Figure 9", "less", None, report.Verdict(1))]
    section = report.Section("a paper", "a setting", claims, few="2 releases in place of 10")
    kept.keep("linkage", section, "2026-11-24", quick=False, seconds=40.4)
    before = kept.studies()["linkage"]
    kept.time("linkage", section, quick=True, seconds=7.6)
    after = kept.studies()["linkage"]
    assert after == {**before, "takes": {"whole": 40, "quick": 8}}
    assert (after["few"], after["files"]) == ("2 releases in place of 10", ["adult.parquet"])
    kept.keep("linkage", section, "2026-11-25", quick=False, seconds=41)
    assert kept.studies()["linkage"]["takes"] == {"whole": 41, "quick": 8}


def test_a_new_study_is_named_before_its_quick_run_was_timed(study, tmp_path, monkeypatch):
    kept, report = study["kept"], study["report"]
    monkeypatch.setattr(kept, "KEPT", tmp_path / "papers.json")
    section = report.Section("a paper", "a setting", [report.Claim("Figure 9", "less", None, report.Verdict(1))])
    kept.keep("linkage", section, "2026-11-24", quick=False, seconds=40.4)
    assert "linkage            40 s, with --quick 0 s" in study["reproduce"]._times()


def test_sampling_lowers_the_loss_only_where_nobody_sees_who_was_asked(study):
    costs = study["local_costs"]
    for epsilon in costs.EPSILONS:
        hidden, promised = costs._hidden_loss(epsilon)
        assert hidden == pytest.approx(promised) and promised < epsilon / 2
        seen, promised = costs._seen_loss(epsilon)
        assert seen == pytest.approx(epsilon) and promised < epsilon


@pytest.mark.parametrize(
    "options", [["--keep", "linkage"], ["--keep", "sreb_gca"], ["--quick", "linkage"], ["--quick", "cnfg"]]
)
def test_a_study_without_its_data_is_refused_and_writes_nothing(study, options, tmp_path, monkeypatch):
    kept, written = study["kept"], tmp_path / "papers.json"
    written.write_bytes(kept.KEPT.read_bytes())
    monkeypatch.setattr(kept, "KEPT", written)
    monkeypatch.setattr(study["listed"], "LIST", tmp_path / "listed.json")
    monkeypatch.setattr(study["listed"], "CARDS", tmp_path / "claims.json")
    monkeypatch.setattr(study["public_data"], "DATA", tmp_path)
    monkeypatch.setattr(study["reproduce"], "PROJECT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["reproduce.py", *options])
    with pytest.raises(SystemExit, match=rf"{options[-1]} lacks .*\.parquet.*DPHIST_DATA"):
        study["reproduce"].main()
    assert [path.name for path in tmp_path.iterdir()] == ["papers.json"]
    assert json.loads(written.read_text()) == json.loads((PROJECT / "docs/measured/papers.json").read_text())


def test_a_look_is_never_kept(study, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study["kept"], "KEPT", tmp_path / "papers.json")
    monkeypatch.setattr(sys, "argv", ["reproduce.py", "--keep", "--quick", "dpcube_theory"])
    with pytest.raises(SystemExit) as ended:
        study["reproduce"].main()
    assert ended.value.code == 2 and "leave one of them out" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_closed_intervals_count_a_value_on_a_boundary_twice(study):
    collecting, printed = study["collecting"], study["collecting_as_printed"]
    values = np.array([0.0] * 5 + [10.0] * 70 + [15.0] * 100 + [20.0] * 9 + [99.0])
    city = collecting.City(values, 0, 60)  # merged boundaries of 2 and 3 intervals: 0, 20, 30, 40 and 60
    for share, way in (("1", "chp"), ("0.5", "sampled")):
        halves, thirds = printed.as_printed(city, collecting.Way((2, 3), way, participation=share), "2", 20_000)
        assert halves.truth.tolist() == [184, 0] and halves.mean.tolist() == [193, 0]
        assert thirds.truth.tolist() == thirds.mean.tolist() == [184, 9, 0]
        for told in (halves, thirds):
            assert told.drawn.mean(axis=0) == pytest.approx(told.mean, abs=5 * (told.variance.max() / 20_000) ** 0.5)
            assert told.drawn.var(axis=0) == pytest.approx(told.variance, rel=0.06)


def test_three_nested_loops_find_groups_as_cheap_as_one_pass(study):
    printed, random = study["printed"], np.random.default_rng(7)
    for price in (0.5, 8.0, 60.0):
        line = random.geometric(0.1, 12).astype(float)
        ways = (printed.cheapest_groups(line, price), printed.cheapest_groups_by_loops(line, price))
        parts = [[line[groups == group] for group in range(groups.max() + 1)] for groups in ways]
        one, other = (sum(((part - part.mean()) ** 2).sum() + price / part.size for part in way) for way in parts)
        assert one == pytest.approx(other)


def test_the_printed_search_of_noise_first_finds_buckets_as_cheap_as_the_package(study):
    printed, random = study["printed"], np.random.default_rng(11)
    for price in (0.5, 20.0, 400.0):
        line = np.repeat(random.normal(0, 20, 5), 4) + random.laplace(0, 2, 20)
        ways = (printed.buckets_by_loops.py_func(line, price), v_optimal(line, price))
        parts = [[line[buckets == bucket] for bucket in np.unique(buckets)] for buckets in ways]
        one, other = (sum(((part - part.mean()) ** 2).sum() + price for part in way) for way in parts)
        assert one == pytest.approx(other)


@pytest.mark.parametrize(("ahead", "groups"), [(False, relative_groups), (True, relative_groups_of_gp)])
def test_the_printed_searches_of_sreb_gca_find_the_groups_of_the_package(study, ahead, groups):
    random, starts = np.random.default_rng(13), study["printed"].relative_by_loops.py_func
    for scale in (1.0, 5.0, 40.0):
        line = np.sort(random.geometric(0.05, 30) + random.laplace(0, 5, 30))
        assert (np.cumsum(starts(line, scale, ahead)) - 1).tolist() == groups(line, scale).tolist()


def test_ahp_of_its_authors_has_the_share_of_the_nearest_epsilon(study):
    ahp = study["measuring"].ahp_of_its_authors()
    for epsilon, share in (("1", "1/2"), ("0.693147", "1/2"), ("0.1", "17/20"), ("0.01", "13/20")):
        made = ahp(np.full(8, 50), Fraction(epsilon), np.random.default_rng(0))
        assert next(charge for _, charge in made.charges) == Fraction(share) * Fraction(epsilon)
    assert str(ahp).startswith("ahp: ")  # by which the mechanisms of a study are known


def test_one_threshold_for_every_share_is_that_of_a_quarter(study):
    dpcube = study["dpcube"]
    noise = sanitize(
        np.zeros((4, 4), dtype=int), mechanism="geometric", epsilon=Fraction(dpcube.ALPHA) / 4, sensitivity=1
    )
    assert noise.unbiased.variance == pytest.approx(dpcube.V_AT_QUARTER)


def test_a_section_without_claims_never_takes_the_place_of_a_kept_one(study, tmp_path, monkeypatch):
    monkeypatch.setattr(study["kept"], "KEPT", tmp_path / "papers.json")
    with pytest.raises(ValueError, match="linkage found nothing to keep"):
        study["kept"].keep(
            "linkage", study["report"].Section("a paper", "no data", []), "2026-11-24", quick=False, seconds=1.0
        )
    assert list(tmp_path.iterdir()) == []
