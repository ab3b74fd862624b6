"""Pictures of comparisons: what is drawn, and from which scores."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from fractions import Fraction

from dphist_pipeline.evaluation import plots
from dphist_pipeline.evaluation.measuring import Score
from dphist_pipeline.evaluation.plots import draw

PNG = b"\x89PNG\r\n\x1a\n"


def scores(mean: float = 3.0) -> list[Score]:
    at = [("mse", ""), ("mre", ""), ("kl", ""), ("mre", "0"), ("mre", "2-5"), ("range_mre", "1"), ("range_mre", "50")]
    return [
        Score(name, Fraction(epsilon), measure, where, mean, 1.0, 5)
        for name in ("geometric", "<dpcube> & co")
        for epsilon in ("1", "1/10")
        for measure, where in at
    ]


def test_draws_what_there_are_scores_for_as_svg_and_png(tmp_path):
    written = draw(scores(), "wards & co", tmp_path / "new" / "plots")
    names = ["errors_by_epsilon", "errors_by_range_length", "relative_error_by_size"]
    assert [path.name for path in written] == [f"{name}.{ending}" for name in names for ending in ("svg", "png")]
    for path in written:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(PNG)
        else:
            words = "".join(ElementTree.fromstring(path.read_text()).itertext())
            assert "wards &" in words and "geometric" in words and "<dpcube> & co" in words


def test_a_long_title_takes_several_lines_of_the_pictures_width(tmp_path):
    data = "weekly_admissions, period 2026-02-23, as published (its own noise is in it), " + "x" * 300
    for path in draw(scores(), data, tmp_path)[::2]:
        picture = ElementTree.fromstring(path.read_text())
        lines = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}tspan") if text.text]
        assert sum(map(len, lines)) >= len(data) - 20 and len(lines) > 2
        assert max(map(len, lines)) * 7.5 < float(picture.attrib["width"])


def test_sizes_of_noisy_counts_are_not_called_true_or_exact(tmp_path):
    for noisy, said in ((False, plots.EXACT_SIZE), (True, plots.NOISY_SIZE)):
        *_, path = draw(scores(), "wards", tmp_path, noisy)[::2]
        words = "".join(ElementTree.fromstring(path.read_text()).itertext())
        assert said in words and "true" not in words
        assert not noisy or "exact" not in words


def test_one_epsilon_makes_no_line_along_epsilon(tmp_path):
    alone = [score for score in scores() if score.epsilon == 1]
    assert [path.stem for path in draw(alone, "wards", tmp_path)][::2] == [
        "errors_by_range_length",
        "relative_error_by_size",
    ]


def test_what_a_log_axis_cannot_show_is_left_out(tmp_path):
    assert draw(scores(mean=0.0), "wards", tmp_path) == []


def test_many_mechanisms_stay_apart():
    looks = {(plots.COLOURS[place % 16], plots.SHAPES[place % 7]) for place in range(112)}
    assert len(looks) == 112 and len(set(plots.COLOURS)) == 16
