"""Mutations of the answers: intervals, boxes, ranges, quantiles and bands, in Python and in SQL."""

from __future__ import annotations

from mutations import Mutation, Part

EVERY = "answering/test_every_question.py::test_"
ALIKE = EVERY + "boxes_shares_and_changes_are_the_same_in_sql_and_python"
RANGES = EVERY + "a_range_says_what_it_covers_in_sql_and_python"
MARGINALS = EVERY + "marginals_are_the_same_in_sql_and_python_and_add_up"
QUANTILES = (
    EVERY + "quantiles_are_the_same_in_sql_and_python",
    EVERY + "quantiles_that_noise_leaves_wide_are_the_same_in_sql_and_python",
)
BANDS = EVERY + "bands_and_whole_counts_are_the_same_in_sql_and_python"
LINEAR = "answering/test_linear_answers.py::test_sql_files_and_estimates_answer_alike"
COVERAGE = "statistical/test_coverage.py::test_"
SQL = ("answering/test_catalogue.py", ALIKE, RANGES)
REPORTED = ("answering/test_reported_answers.py",)

ANSWERS = (
    Part(
        "dphist_pipeline/answering/intervals.py",
        ("answering/test_shares.py", "answering/test_intervals.py", "answering/test_linear_answers.py"),
        (
            Mutation("LEVEL = Fraction(95, 100)", "LEVEL = Fraction(90, 100)", "90 % where 95 % is said"),
            Mutation("Fraction(975, 1000)", "Fraction(95, 100)", "two intervals of 95 % for a share"),
            Mutation(
                "half_width_of_sum(scale, draws, level) + 1)", "half_width_of_sum(scale, draws, level))", "no + 1"
            ),
            Mutation("np.sin((c + 0.5)", "np.sin((c + 1.5)", "the probability of one more"),
            Mutation("sorted({*_grid(cells), cells})", "_grid(cells)", "no width for the largest box"),
            Mutation("max(number + 1, math.floor", "max(number + 2, math.floor", "a grid with gaps"),
            Mutation(
                "variance / noise_law.variance(scale) * (1 + 1e-9)",
                "variance / noise_law.variance(scale) * 2",
                "more draws than there are",
            ),
            Mutation(
                "return 0\n    if isinstance(unbiased, ReportedCells)",
                "return 1\n    if isinstance(unbiased, ReportedCells)",
                "an empty box is not 0",
            ),
            Mutation("np.sin(self._t / 2) ** 2)\n", "np.sin(self._t / 2))\n", "another characteristic function"),
        ),
    ),
    Part(
        "dphist_pipeline/answering/report_intervals.py",
        ("statistical/test_report_intervals.py", *REPORTED),
        (
            Mutation("np.abs(slope) + step / 3", "np.abs(slope) + step / 6", "half the correction for few bits"),
            Mutation("2 * math.log(2 / missed)", "2 * math.log(1 / missed)", "one side of a band"),
            Mutation("np.abs(slope) +", "slope +", "a falling variance makes it narrower"),
            Mutation("np.maximum(below, above)", "np.minimum(below, above)", "the smaller slope"),
            Mutation("half + np.sqrt(half**2 +", "np.sqrt(half**2 +", "without the shift"),
            Mutation("(-q, atoms[-1] - atoms[:-1]", "(q, atoms[-1] - atoms[:-1]", "a weight's sign"),
        ),
    ),
    Part(
        "dphist_pipeline/answering/boxes.py",
        ("answering/test_boxes.py", "answering/test_cut_boxes.py"),
        (
            Mutation("centre - reach, centre +", "max(0.0, centre - reach), centre +", "a lower end cut off at 0"),
            Mutation("inside, centre, centre -", "inside, inside, centre -", "the estimate called unbiased"),
            Mutation("centre + reach, basis", "inside + reach, basis", "around the estimate"),
        ),
    ),
    Part(
        "dphist_pipeline/answering/ranges.py",
        ("answering/test_cut_boxes.py", RANGES),
        (
            Mutation("return self.inner.ci_lower", "return self.outer.ci_lower", "rows of cut bins are inside"),
            Mutation("along[share[along] != 0]", "along[share[along] == 1]", "cut bins are left out"),
            Mutation("(lower >= low) & (upper <= high)", "(lower >= low) & (upper < high)", "an edge is cut"),
            Mutation("(math.isfinite(high) and high > most)", "False", "ends beyond the bins"),
            Mutation("if not low < high:", "if not low <= high:", "an empty range"),
            Mutation(
                '"exactly" if self.inner.cells == self.outer.cells', '"exactly" if self.inner.cells', "says exactly"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/answering/quantiles.py",
        (
            *QUANTILES,
            COVERAGE + "a_quantile_that_lies_at_an_edge_is_held_as_often_as_promised",
            "answering/test_linear_answers.py::test_what_a_quantile_weighs_has_the_variance_of_its_cells",
        ),
        (
            Mutation("(1 - LEVEL) / (len(positions[place]) - 1)", "(1 - LEVEL)", "a band of single intervals"),
            Mutation("LEVEL = 0.95", "LEVEL = 0.9", "90 % where 95 % is said"),
            Mutation("balance + reach < 0)", "balance - reach < 0)", "bins are excluded by the wrong end"),
            Mutation("int(surely_above[-1]) + 1 if", "int(surely_above[-1]) if", "one bin too many"),
            Mutation("below >= q * below[-1]))", "below > q * below[-1]))", "a quantile at an edge is in the next bin"),
            Mutation("int(surely_below[0]) if", "int(surely_below[-1]) if", "the last bin that is excluded"),
            Mutation("- q * (1 - q) * whole)", ")", "the covariance of both sides is forgotten"),
            Mutation("return min(least, most), max(least, most)", "return least, most", "ends in the wrong order"),
            Mutation("(between - 1) * float(width)", "between * float(width)", "one node too many"),
            Mutation("if not 0 < q < 1:", "if not 0 <= q <= 1:", "a quantile of 0"),
        ),
    ),
    Part(
        "dphist_pipeline/answering/bands.py",
        (
            COVERAGE + "a_band_is_the_narrowest_by_the_exact_law",
            COVERAGE + "chernoffs_bound_is_never_below_the_exact_quantile_and_not_far_above",
            BANDS,
            "statistical/test_report_intervals.py::test_bands_hold_every_cell_by_bernsteins_inequality",
        ),
        (
            Mutation(
                "bernstein_factor((1 - level) / cells)", "bernstein_factor(1 - level)", "single intervals of reports"
            ),
            Mutation(
                "(unbiased.variance), (1 - level) / cells)", "(unbiased.variance), 1 - level)", "single intervals"
            ),
            Mutation("-math.expm1(math.log(level) / cells)", "1 - level", "single intervals of independent cells"),
            Mutation("- 1 + 1e-9)", "- 2 + 1e-9)", "one too narrow"),
            Mutation("np.where(variance > 0, reach, 0.0)", "reach", "an interval where nothing is random"),
        ),
    ),
    Part(
        "sql/answering/pieces/reach.sql",
        SQL,
        (
            Mutation("SELECT max_by(", "SELECT min_by(", "the width of one draw"),
            Mutation("WHEN summed.cells = 0 THEN 0\n", "WHEN summed.cells = 0 THEN NULL\n", "no interval of nothing"),
            Mutation("w.noise_scale = summed.noise_scale AND w.cells", "w.cells", "the width of another release"),
        ),
    ),
    Part(
        "sql/answering/pieces/opening.sql",
        SQL,
        (Mutation("list_contains(asked.periods, latest.period), true", "true, true", "all periods answer"),),
    ),
    Part(
        "sql/answering/pieces/answer.sql",
        SQL,
        (
            Mutation(
                "barred.unbiased - barred.half_width", "greatest(0, barred.unbiased - barred.half_width)", "cut at 0"
            ),
            Mutation("barred.unbiased + barred", "barred.estimate + barred", "around the estimate"),
            Mutation("> barred.half_width + 1e-6", "> 2 * barred.half_width", "a smoothed estimate is not told"),
        ),
    ),
    Part(
        "sql/answering/pieces/nested.sql",
        (LINEAR, ALIKE),
        (Mutation("(spans.final % spans.width + 1.0)", "(spans.final % spans.width)", "a position too few"),),
    ),
    Part(
        "sql/answering/pieces/boxes.sql",
        SQL,
        (
            Mutation("bool_and(p.is_wanted)", "bool_or(p.is_wanted)", "conditions on levels are joined by or"),
            Mutation("OR axes.low >= axes.high", "OR axes.low > axes.high", "an empty range"),
            Mutation("WHERE allowed.wanted = 0 AND", "WHERE false AND", "a box without cells is answered by 0"),
        ),
    ),
    Part(
        "sql/answering/dph_quantile.sql",
        (*QUANTILES,),
        (
            Mutation(
                "0.05 / greatest(1, spans.final - spans.first)",
                "0.05 / greatest(1, spans.final - spans.first + 1)",
                "one edge",
            ),
            Mutation(
                "r.balance - r.half_width >= 0",
                "r.balance - r.half_width > 0",
                "an edge that is reached exactly",
                "half widths are logarithms: never equal",
            ),
            Mutation(
                "r.balance + r.half_width < 0", "r.balance - r.half_width < 0", "bins are excluded by a wrong end"
            ),
            Mutation("max(r.position + 1) FILTER", "max(r.position) FILTER", "one bin too many"),
            Mutation("-edges.q * (1 - edges.q)]", "0]", "the covariance of both sides is forgotten"),
        ),
    ),
    Part(
        "sql/answering/dph_band.sql",
        ("answering/test_catalogue.py::test_a_band_over_thousands_of_cells_is_as_wide_as_in_python", BANDS),
        (
            Mutation(
                "(1 - CAST(level AS DOUBLE)) / counted.cells\n", "(1 - CAST(level AS DOUBLE))\n", "single intervals"
            ),
            Mutation(
                "ELSE 1 - exp(ln(CAST(level AS DOUBLE)) / counted.cells)",
                "ELSE 1 - CAST(level AS DOUBLE)",
                "single intervals",
            ),
            Mutation("* (1 + ln(CAST(level AS DOUBLE)) / counted.cells / 2)", "* 10", "many cells: too wide"),
            Mutation("/ v.decay - 1 + 1e-9", "/ v.decay - 2 + 1e-9", "one too narrow"),
        ),
    ),
    Part(
        "sql/answering/dph_range.sql",
        (RANGES,),
        (Mutation("(ranges.high_end > ranges.greatest AND isfinite", "(false AND isfinite", "ends beyond the bins"),),
    ),
    Part(
        "sql/answering/pieces/range_positions.sql",
        (RANGES,),
        (
            Mutation("bins.bin_upper > ranges.low_end", "bins.bin_upper >= ranges.low_end", "the bin before the range"),
            Mutation("bins.bin_upper <= ranges.high_end", "bins.bin_upper < ranges.high_end", "the last bin"),
        ),
    ),
    Part(
        "sql/answering/dph_share.sql",
        (ALIKE,),
        (
            Mutation(
                "b.part_lower / (b.part_lower + b.other_upper)", "b.part_lower / (b.part_lower + b.other_lower)", "ends"
            ),
            Mutation(
                "ELSE least(1, b.part_lower / b.other_upper)", "ELSE b.part_lower / b.other_upper", "a share above 1"
            ),
            Mutation(
                "SELECT summed.*, {reach_of_two} AS part_reach", "SELECT summed.*, {reach} AS part_reach", "95 % twice"
            ),
        ),
    ),
    Part(
        "sql/answering/dph_mean.sql",
        ("answering/test_means.py",),
        (
            Mutation("WHEN r.span = 0 OR r.distance <= 0", "WHEN r.distance <= 0", "one bin", "its noise is 0 as well"),
            Mutation("- 2 * e.span * e.crossed", "", "draws of another weight"),
            Mutation("f.factor ** 2 * f.crossed AS half", "f.crossed AS half", "the covariance with the rows"),
        ),
    ),
    Part(
        "sql/answering/pieces/covariances.sql",
        ("answering/test_means.py",),
        (
            Mutation(
                "SELECT c.period, c.revision, c.grid, 0, a.axis, 1,",
                "SELECT c.period, c.revision, c.grid, 0, a.axis, 2,",
                "neighbours share noise",
            ),
            Mutation("product(coalesce(p.product, 0) ORDER BY n.axis)", "max(coalesce(p.product, 0))", "one axis"),
        ),
    ),
    Part(
        "sql/answering/dph_compare.sql",
        (ALIKE,),
        (
            Mutation(
                "one.cells + two.cells AS cells", "greatest(one.cells, two.cells) AS cells", "noise of one period"
            ),
            Mutation("ELSE summed.half_width_apart END", "ELSE {reach} END", "two laws of noise taken as one"),
        ),
    ),
    Part(
        "sql/answering/dph_marginal.sql",
        (MARGINALS, "answering/test_reported_answers.py"),
        (
            Mutation("AND kinds.slope IS NOT DISTINCT FROM l.slope", "", "rows come twice, with another's interval"),
            Mutation(
                "any_value(nested.squares) * product(rolled_squares.squares)", "any_value(nested.squares)", "levels"
            ),
            Mutation("CASE WHEN g._cells = 1 THEN bins.atoms ELSE a.atoms END", "a.atoms", "atoms of the whole box"),
        ),
    ),
    Part(
        "sql/answering/pieces/report_variance.sql",
        (*REPORTED,),
        (Mutation("* greatest(0, {count})", "* {count}", "negative estimates lower the variance"),),
    ),
)
