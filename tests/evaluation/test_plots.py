"""Pictures of comparisons: what is drawn, and from which scores."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from fractions import Fraction

import pytest

from dphist_pipeline.workbench.evaluation import _plots as plots
from dphist_pipeline.workbench.evaluation._plots import draw
from dphist_pipeline.workbench.evaluation.measuring import MeasureResult

PNG = b"\x89PNG\r\n\x1a\n"


def scores(mean: float = 3.0) -> list[MeasureResult]:
    of_values = [("mre_of_value", "-3"), ("mre_of_value", "0"), ("mre_of_value", "17")]
    at = [
        ("mse", ""),
        ("mre", ""),
        ("kl", ""),
        ("mre", "0"),
        ("mre", "2-5"),
        *of_values,
        ("range_mre", "1"),
        ("range_mre", "50"),
    ]
    return [
        MeasureResult(name, Fraction(epsilon), measure, where, mean, 1.0, 5)
        for name in ("geometric", "<dpcube> & co")
        for epsilon in ("1", "1/10")
        for measure, where in at
    ]


@pytest.mark.slow
def test_draws_what_there_are_scores_for_as_svg_and_png(tmp_path):
    written = draw(scores(), "wards & co", tmp_path / "new" / "plots")
    names = ["errors_by_epsilon", "divergence_by_epsilon", "errors_by_range_length"]
    names += ["relative_error_by_size", "relative_error_by_value"]
    assert [path.name for path in written] == [f"{name}.{ending}" for name in names for ending in ("svg", "png")]
    for path in written:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(PNG)
        else:
            words = "".join(ElementTree.fromstring(path.read_text()).itertext())
            assert "wards &" in words and "geometric" in words and "<dpcube> & co" in words


@pytest.mark.slow
def test_sizes_of_noisy_counts_are_not_called_true_or_exact(tmp_path):
    of_values = [score for score in scores() if score.measure == "mre_of_value" and score.epsilon == 1]
    for noisy, said in ((False, plots.EXACT_SIZE), (True, plots.NOISY_SIZE)):
        path, _ = draw(of_values, "wards", tmp_path, noisy)
        words = "".join(ElementTree.fromstring(path.read_text()).itertext())
        assert said in words and "true" not in words
        assert not noisy or "exact" not in words


@pytest.mark.slow
def test_one_epsilon_makes_no_line_along_epsilon(tmp_path):
    alone = [score for score in scores() if score.epsilon == 1]
    assert [path.stem for path in draw(alone, "wards", tmp_path)][::2] == [
        "errors_by_range_length",
        "relative_error_by_size",
        "relative_error_by_value",
    ]


def test_what_a_log_axis_cannot_show_is_left_out(tmp_path):
    assert draw(scores(mean=0.0), "wards", tmp_path) == []


def test_many_mechanisms_stay_apart():
    looks = {(plots.COLOURS[place % 16], plots.SHAPES[place % 7]) for place in range(112)}
    assert len(looks) == 112 and len(set(plots.COLOURS)) == 16


def test_sizes_are_in_order_of_their_lowest_count():
    assert sorted(["11-20", "-3", "2-5", "0", "-12", "6-10", "1"], key=plots._lowest) == [
        *("-12", "-3", "0", "1", "2-5", "6-10", "11-20")
    ]
