"""Alone: `python tests/audits/mutations.py --only /answering/`; one: `--only 'dph_mean.sql: draws'`.

Mutations of the answers: intervals and boxes in Python, every question in SQL.
"""

from __future__ import annotations

from mutations import Mutation, Part

EVERY = "answering/test_every_question.py::test_"
PORTALS = "answering/test_portals.py"
ALIKE = EVERY + "boxes_shares_and_changes_are_the_same_in_sql_and_python"
RANGES = EVERY + "a_range_says_what_it_covers_in_sql_and_python"
MARGINALS = EVERY + "marginals_are_the_same_in_sql_and_python_and_add_up"
QUANTILES = (
    EVERY + "quantiles_are_the_same_in_sql_and_python",
    EVERY + "quantiles_that_noise_leaves_wide_are_the_same_in_sql_and_python",
    EVERY + "a_quantile_of_two_bins_pays_for_the_one_edge_between_them",
)
BANDS = EVERY + "bands_and_whole_counts_are_the_same_in_sql_and_python"
LINEAR = "answering/test_linear_answers.py::test_sql_files_and_estimates_answer_alike"
COVERAGE = "statistical/test_coverage.py::test_"
SQL = ("answering/test_catalogue.py", ALIKE, RANGES)
REPORTED = ("answering/test_reported_answers.py",)

ANSWERS = (
    Part(
        "dphist_pipeline/answering/_query_parts.py",
        ("answering/test_query_parts.py",),
        (
            Mutation('if "MATERIALIZED" in opening}', "if not opening}", "what is computed once is written in place"),
            Mutation('re.findall(r"\\w+", texts)', "[]", "what a text asks for is left out"),
            Mutation("if times[name] > 1}", "if times[name] > 2}", "a part that is read twice is written twice"),
            Mutation("if times[name] or name in stay:", "if True:", "what nobody reads counts as a reader"),
            Mutation('lists_tables or before != "DISTINCT"', "True", "a column is taken for a table"),
            Mutation(
                "            lists_tables = lists_tables and before in _BEFORE_TABLES\n", "", "an argument is a table"
            ),
            Mutation('not in (".", "(")', 'not in (".",)', "a function is taken for a table"),
        ),
    ),
    Part(
        "dphist_pipeline/answering/catalogue_tables.py",
        ("unit/test_published_columns.py",),
        (
            Mutation(
                "        columns.setdefault(name, pa.type_for_alias(kind))\n",
                "        pass\n",
                "older files are not opened",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/estimates/laws/_interface.py",
        ("answering/test_shares.py", "answering/test_intervals.py", "answering/test_linear_answers.py"),
        (
            Mutation("LEVEL = Fraction(95, 100)", "LEVEL = Fraction(90, 100)", "90 % where 95 % is said"),
            Mutation("Fraction(975, 1000)", "Fraction(95, 100)", "two intervals of 95 % for a share"),
            Mutation("self.exact_half_width(draws, level) + 1)", "self.exact_half_width(draws, level))", "no + 1"),
            Mutation("np.sin((c + 0.5)", "np.sin((c + 1.5)", "the probability of one more"),
            Mutation("while numbers[-1] < most:", "while numbers[-1] < most // 2:", "no width for the largest box"),
            Mutation("exact_half_width(_grid(draws)[-1]", "exact_half_width(draws", "other widths than SQL"),
            Mutation("max(numbers[-1] + 1, math.floor", "max(numbers[-1] + 2, math.floor", "a grid with gaps"),
            Mutation(
                "variance / self.variance * (1 + 1e-9)",
                "variance / self.variance * 2",
                "more draws than there are",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/estimates/laws/_laplace.py",
        ("answering/test_intervals.py",),
        (Mutation("np.sin(turn / 2) ** 2)\n", "np.sin(turn / 2))\n", "another characteristic function"),),
    ),
    Part(
        "dphist_pipeline/estimates/laws/_reports.py",
        ("statistical/test_report_intervals.py", *REPORTED),
        (
            Mutation("np.abs(slope) + step / 3", "np.abs(slope) + step / 6", "half the correction for few bits"),
            Mutation("2 * math.log(2 / missed)", "2 * math.log(1 / missed)", "one side of a band"),
            Mutation("np.abs(slope) +", "slope +", "a falling variance makes it narrower"),
            Mutation("half + np.sqrt(half**2 +", "np.sqrt(half**2 +", "without the shift"),
        ),
    ),
    Part(
        "dphist_pipeline/estimates/estimate.py",
        ("answering/test_boxes.py", "answering/test_cut_boxes.py"),
        (
            Mutation("middle, inner.lower, outer", "middle, max(0.0, inner.lower), outer", "a lower end cut off at 0"),
            Mutation("Answer(total, middle,", "Answer(total, total,", "the estimate called unbiased"),
            Mutation("else _sum(unbiased.values, around", "else _sum(values, around", "around the estimate"),
            Mutation("along[share == 1]", "along", "rows of cut bins are inside"),
        ),
    ),
    Part(
        "dphist_pipeline/estimates/chosen_cells.py",
        ("answering/test_boxes.py", "answering/test_cut_boxes.py"),
        (
            Mutation("np.where((upper > low) & (lower < high), overlap, 0.0)", "0.0", "cut bins are left out"),
            Mutation(
                "all(axis.edges[0] < end", "all(axis.edges[0] <= end", "ends beyond the bins", "edges are no cuts"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/answering/_macro_calls.py",
        ("answering/test_catalogue_growing.py", "answering/test_shares.py", "answering/test_cut_boxes.py"),
        (Mutation("source.digest in digests and not source.renamed", "True", "a catalogue without the publication"),),
    ),
    Part(
        "dphist_pipeline/answering/asking.py",
        (
            "answering/test_shares.py",
            "answering/test_cut_boxes.py",
            "answering/test_catalogue_growing.py",
            "answering/test_catalogue.py",
            "local/test_publication.py",
        ),
        (
            Mutation(
                '"revision": mine.revision, **self',
                '"revision": None, **self',
                "the latest revision instead of this one",
            ),
            Mutation("RangeAnswer(answers[0], answers[-1])", "RangeAnswer(answers[0], answers[0])", "no outer bins"),
            Mutation("(one.period, one.revision) ==", "(one.period, 0) ==", "no change of a release since itself"),
        ),
    ),
    Part(
        "dphist_pipeline/estimates/laws/_interface.py",
        (
            COVERAGE + "chernoffs_bound_is_never_below_the_exact_quantile_and_not_far_above",
            COVERAGE + "a_sum_that_nothing_random_is_in_has_no_reach",
            BANDS,
        ),
        (
            Mutation("math.log(2 / missed)", "math.log(1 / missed)", "one side of a band"),
            Mutation("np.where(variance > 0, reach, 0.0)", "reach", "an interval where nothing is random"),
        ),
    ),
    Part(
        "sql/answering/pieces/expressions.sql",
        SQL,
        (
            Mutation("greatest(1, summed.linear_variance", "least(1, summed.linear_variance", "the width of one draw"),
            Mutation("THEN {'one': 0.0, 'two': 0.0}", "THEN NULL", "no interval of nothing"),
            Mutation(
                "of_cells.noise_scale = summed.noise_scale AND of_cells", "of_cells", "the width of another release"
            ),
        ),
    ),
    Part(
        "sql/answering/pieces/opening.sql",
        SQL,
        (
            Mutation("coalesce(k.period = published.period, true)", "true", "all periods answer"),
            Mutation("coalesce(k.revision = published.revision, published.is_latest)", "true", "all revisions answer"),
        ),
    ),
    Part(
        "sql/answering/pieces/answer.sql",
        SQL,
        (
            Mutation("    barred.ci_lower,\n", "    greatest(0, barred.ci_lower) AS ci_lower,\n", "cut at 0"),
            Mutation("NOT BETWEEN barred.ci_lower - 1e-6 AND", "NOT BETWEEN 0 AND", "a smoothed estimate is not told"),
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
            Mutation("bool_and(CASE", "bool_or(CASE", "conditions on levels are joined by or"),
            Mutation("= 'inner' THEN p.is_within", "= 'inner' THEN p.is_around", "rows of cut bins are inside"),
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
            Mutation(
                "-edges.q * (1 - edges.q)]) AS weight\n        FROM nested",
                "0]) AS weight\n        FROM nested",
                "the covariance of both sides is forgotten",
            ),
        ),
    ),
    Part(
        "sql/answering/dph_band.sql",
        ("answering/test_catalogue.py::test_a_band_over_thousands_of_cells_is_as_wide_as_it_must_be", BANDS),
        (
            Mutation(
                "(1 - TRY_CAST(level AS DOUBLE)) / counted.cells\n",
                "(1 - TRY_CAST(level AS DOUBLE))\n",
                "single intervals",
            ),
            Mutation(
                "ELSE 1 - exp(ln(TRY_CAST(level AS DOUBLE)) / counted.cells)",
                "ELSE 1 - TRY_CAST(level AS DOUBLE)",
                "single intervals",
            ),
            Mutation("* (1 + ln(TRY_CAST(level AS DOUBLE)) / counted.cells / 2)", "* 10", "many cells: too wide"),
            Mutation("v.tail_factor / v.missed", "1 / v.missed", "draws beside the heaviest are forgotten"),
        ),
    ),
    Part(
        "sql/answering/pieces/expressions.sql",
        ("answering/test_catalogue.py::test_a_band_over_thousands_of_cells_is_as_wide_as_it_must_be", BANDS),
        (Mutation("/ {{ row }}.decay - 1 + 1e-9", "/ {{ row }}.decay - 2 + 1e-9", "one too narrow"),),
    ),
    Part(
        "sql/answering/pieces/one_box.sql",
        ("answering/test_cut_boxes.py", *SQL),
        (Mutation("coalesce(within.ci_lower, r.ci_lower)", "r.ci_lower", "rows of cut bins are inside"),),
    ),
    Part(
        "sql/answering/pieces/group_sums.sql",
        ("answering/test_group_sums.py",),
        (
            Mutation("HAVING sum(s.cells) = any_value(n.cells)", "", "sums of groups that a box cuts"),
            Mutation("larger.sum_number = w.parent", "false", "every box of a hierarchy, and those within it"),
            Mutation(
                "AND sets.cells = n.all_cells",
                "",
                "the sum of all groups for a part of the cells",
                "`ends` refuses a sum of other cells than the box has",
            ),
            Mutation("w.cells >= g.draws", "w.cells >= 1", "the width of one draw"),
        ),
    ),
    Part(
        "sql/answering/pieces/ends.sql",
        ("answering/test_group_sums.py",),
        (
            Mutation(
                "[r.unbiased - r.reach.two, r.unbiased + r.reach.two]",
                "[r.unbiased - r.reach.one, r.unbiased + r.reach.one]",
                "cells at 95 % beside groups",
            ),
            Mutation(
                "[g.unbiased - g.reach.two, g.unbiased + g.reach.two]",
                "[g.unbiased - g.reach.one, g.unbiased + g.reach.one]",
                "groups at 95 % beside cells",
            ),
            Mutation("e.group_variance < e.own_variance", "e.group_variance > e.own_variance", "the worse number"),
            Mutation("AND g.cells = r.cells", "", "groups that cover a part of the box"),
        ),
    ),
    Part(
        "dphist_pipeline/estimates/noisy.py",
        ("answering/test_group_sums.py",),
        (
            Mutation("whole & ~(whole[self.parents] & (self.parents >= 0))", "whole", "every box, and those within it"),
            Mutation("self.sizes[chosen].sum() == inside.sum()", "True", "boxes that leave cells out"),
            Mutation(
                "zip(parents, offsets, strict=False)",
                "zip(parents, [0] * 99, strict=False)",
                "parents of another level",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/estimates/estimate.py",
        ("answering/test_group_sums.py",),
        (
            Mutation(
                "math.prod(map(len, cells)) < estimate.domain.cells",
                "False",
                "boxes that happen to be unions of groups",
            ),
            Mutation("two if two.noise_error < one.noise_error else one", "one", "the worse number"),
        ),
    ),
    Part(
        "sql/answering/pieces/expressions.sql",
        ("answering/test_cut_boxes.py", *SQL),
        (Mutation("WHEN k.final THEN k.final_share", "WHEN k.final THEN k.first_share", "another share of a bin"),),
    ),
    Part(
        "sql/answering/pieces/expressions.sql",
        (*SQL,),
        (Mutation("- floor(({{ number }}) * 1048576) / 1048576", "", "fractions are added twice"),),
    ),
    Part(
        "sql/answering/dph_range.sql",
        (EVERY + "a_wrong_name_is_told_the_right_ones", RANGES),
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
        ("answering/test_shares.py", ALIKE),
        (
            Mutation(
                "b.part_lower / (b.part_lower + b.other_upper)", "b.part_lower / (b.part_lower + b.other_lower)", "ends"
            ),
            Mutation(
                "of_cells.cells <= least(summed.cells, ",
                "of_cells.cells <= greatest(summed.cells, ",
                "tails of more draws",
            ),
            Mutation(
                "(b.vat + b.part_chance) AS middle", "b.part_chance AS middle", "part and whole taken for independent"
            ),
            Mutation("CASE WHEN b.root > 1 AND", "CASE WHEN b.root > 2 AND", "shares outside of both roots"),
            Mutation(
                "SELECT summed.*, ({{ reach() }}).two AS part_reach",
                "SELECT summed.*, ({{ reach() }}).one AS part_reach",
                "95 % twice",
            ),
        ),
    ),
    Part(
        "sql/answering/pieces/cut_along.sql",
        ("answering/test_capped.py",),
        (
            Mutation("<= 1\n", "<= 9\n", "the rows cut along one of two axes"),
            Mutation(
                "coalesce(min(s.axis) FILTER (s.wanted < s.size), ", "coalesce(NULL, ", "an axis that is spelled out"
            ),
        ),
    ),
    Part(
        "sql/answering/dph_ratio.sql",
        ("answering/test_capped.py",),
        (
            Mutation("+ (1 - v.wider) ** 2 * v.both_draws", "", "rows cut in both boxes"),
            Mutation(
                "p.second_unbiased + k.second_cut > 5 *", "p.second_unbiased + k.second_cut > 0 *", "counts near 0"
            ),
        ),
    ),
    Part(
        "sql/answering/dph_mean.sql",
        ("answering/test_means.py",),
        (
            Mutation("WHEN r.span = 0 OR r.distance <= 0", "WHEN r.distance <= 0", "one bin", "its noise is 0 as well"),
            Mutation("- 2 * e.span * e.crossed", "", "draws of another weight"),
            Mutation(
                "(f.crossed + f.crossed_by_chance) AS half",
                "f.crossed_by_chance AS half",
                "the covariance with the rows",
            ),
        ),
    ),
    Part(
        "sql/answering/dph_ranks.sql",
        ("answering/test_more_questions.py",),
        (
            Mutation("0.05 / count(*) OVER (PARTITION BY a.period)", "0.05", "single intervals"),
            Mutation(
                "1 + count(*) FILTER (two._unbiased - two", "1 + count(*) FILTER (two._unbiased + two", "a wrong end"
            ),
        ),
    ),
    Part(
        "sql/answering/dph_difference.sql",
        ("answering/test_more_questions.py",),
        (
            Mutation("- 2 * b.crossed + b.second", "+ b.second", "cells of both boxes count twice"),
            Mutation("WHEN b.is_nested THEN 4 ELSE 1", "WHEN b.is_nested THEN 1 ELSE 1", "draws with a weight of 2"),
        ),
    ),
    Part(
        "sql/answering/pieces/matched.sql",
        ("answering/test_rates.py", "answering/test_more_questions.py"),
        (
            Mutation("WHERE m.lines > 1", "WHERE m.lines > 2", "two populations of one row"),
            Mutation("m.population > 0 AND", "m.population >= 0 AND", "division by nothing"),
        ),
    ),
    Part(
        "sql/answering/dph_over.sql",
        ("answering/test_more_questions.py",),
        (
            Mutation("max(s.noise_variance) AS noise_variance", "min(s.noise_variance) AS noise_variance", "draws"),
            Mutation("s.period <= coalesce(limits.last", "s.period < coalesce(limits.last", "without the last period"),
        ),
    ),
    Part(
        "sql/answering/dph_changes.sql",
        ("answering/test_by_values.py",),
        (Mutation("one.called = two.called AND", "one.cell = two.cell AND", "values of other axes are compared"),),
    ),
    Part(
        "sql/answering/pieces/rows_by.sql",
        ("answering/test_by_values.py",),
        (
            Mutation("HAVING count(*) = (", "HAVING 0 < (", "a value without cells in one box has a row"),
            Mutation("PARTITION BY g.grid, g.axis, g.called", "PARTITION BY g.grid, g.axis, g.position", "levels"),
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
        "sql/answering/pieces/crossed.sql",
        (ALIKE,),
        (
            Mutation("CAST(p.held AS DOUBLE) * p.times", "CAST(p.held AS DOUBLE)", "one node between the ends"),
            Mutation("WHEN s.whole_has_gaps THEN n.held", "", "gaps of the whole are filled"),
        ),
    ),
    Part(
        "sql/answering/pieces/change_of_two.sql",
        (ALIKE,),
        (
            Mutation(
                "one.cells + two.cells AS cells", "greatest(one.cells, two.cells) AS cells", "noise of one period"
            ),
            Mutation("WHEN summed.is_one_law THEN", "WHEN true THEN", "two laws of noise taken as one"),
        ),
    ),
    Part(
        "sql/answering/internals/dph_counted_by.sql",
        (MARGINALS, "answering/test_reported_answers.py"),
        (
            Mutation("AND kinds.slope IS NOT DISTINCT FROM l.slope", "", "rows come twice, with another's interval"),
            Mutation(
                "any_value(nested.squares) * product(rolled_squares.squares ORDER BY rolled_squares.axis)",
                "any_value(nested.squares)",
                "levels",
            ),
            Mutation("CASE WHEN g._cells = 1 THEN bins.atoms ELSE a.atoms END", "a.atoms", "atoms of the whole box"),
        ),
    ),
    Part(
        "sql/answering/pieces/expressions.sql",
        (*REPORTED,),
        (Mutation("gamma * greatest(0, {{ count }})", "gamma * {{ count }}", "negative estimates lower the variance"),),
    ),
    Part(
        "dphist_pipeline/answering/_downloads.py",
        ("answering/test_downloads.py",),
        (
            Mutation("file.parent not in wanted and ", "", "files of what stands are emptied"),
            Mutation('replace_public(file, "", scratch)', "pass", "what was withdrawn stays to be downloaded"),
        ),
    ),
    Part(
        "dphist_pipeline/answering/_picker_files.py",
        ("answering/test_picker_files.py",),
        (
            Mutation("WHERE is_latest ORDER BY ALL", "ORDER BY ALL", "superseded numbers are offered"),
            Mutation("            _put(file, empty, scratch)\n", "            str(file)\n", "withdrawn cells stay"),
            Mutation("[[one, reached.get(one)] for one in scales]", "scales", "wider tables never arrive"),
            Mutation("if one.cells > MOST_CELLS:", "if not one:", "the cells of every large table are written"),
            Mutation("!= mark and (public", "!= mark or (public", "each publication writes the files of all releases"),
            Mutation("one.grid == newest.grid]", "True]", "cells of other axes are added up"),
        ),
    ),
    Part(
        "dphist_pipeline/answering/_picker_columns.py",
        ("answering/test_picker_files.py",),
        (
            Mutation("estimate[places]", "unbiased[places]", "smoothed estimates are lost"),
            Mutation("upto.sum(axis=0, keepdims=True)", "upto[-1:]", "a tile begins with the sums of its neighbour"),
            Mutation("values - units / _UNITS", "values * 0", "what remains of a 2^-20th is lost before a tile"),
        ),
    ),
    Part(
        "dphist_pipeline/answering/_export_px.py",
        (PORTALS,),
        (
            Mutation("""replace('"', "'")""", """replace('"', '"')""", "a text ends its quotes"),
            Mutation("if plain in folded_names:", "if False:", "two categories have one label"),
            Mutation("value is not None and math.isfinite(value)", "True", "a cell without interval holds 0"),
            Mutation("if [code.meant for code in", "if False and [code.meant for code in", "bins of two periods mixed"),
        ),
    ),
    Part(
        "dphist_pipeline/answering/_axis_codes.py",
        (PORTALS,),
        (
            Mutation(".meant != code.meant", ".meant != found[code.code].meant", "a code means two bins"),
            Mutation('with in_language(""):  # a', 'with in_language("de"):  # a', "codes differ by language"),
        ),
    ),
    Part(
        "dphist_pipeline/answering/_export_dcat.py",
        (PORTALS,),
        (
            Mutation(
                "    if problems := faults(public):", "    if problems := []:", "a field with a wrong name says nothing"
            ),
            Mutation("link_of(text) if name in _LINKS else text", "text", "a contact whose address is no link"),
        ),
    ),
)
