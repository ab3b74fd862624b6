"""Alone: `python tests/audits/mutations.py --only '/(mechanisms|solvers)/'`; one: `--only 'haar.py: halves'`.

Mutations of mechanisms and solvers: whole budgets, shares, groups, least squares, the cheapest splits.
"""

from __future__ import annotations

from mutations import Mutation, Part

EVERY = "mechanisms/test_every_mechanism.py"

ARITHMETIC = (
    Part(
        "dphist_pipeline/mechanisms/__init__.py",
        ("mechanisms/test_foreign_mechanisms.py", EVERY),
        (
            Mutation("    if len(homes) > 1:\n", "    if False:\n", "of two packages the first to be found is trusted"),
            Mutation("        if setting not in known:\n", "        if False:\n", "a setting that does nothing"),
        ),
    ),
    Part(
        "dphist_pipeline/mechanisms/__init__.py",
        ("mechanisms/test_settings.py",),
        (
            Mutation(" or getattr(mechanism, name) != later[name])", ")", "a later setting is in no digest"),
            Mutation("(name not in later or ", "(True or ", "a later setting changes the digests of old specs"),
            Mutation("{} if better.keys() & set(written) else", "{} if False else", "what was written is replaced"),
        ),
    ),
    Part(
        "dphist_pipeline/mechanisms/noise_first.py",
        ("mechanisms/test_noise_first.py",),
        (
            Mutation(
                "_cheapest(noisy, 2 * noisy.variance)", "_cheapest(noisy, noisy.variance)", "half the paper's price"
            ),
            Mutation("return bic if error(bic,", "return paper if error(bic,", "auto takes the worse split"),
        ),
    ),
    Part(
        "dphist_pipeline/mechanisms/noise_first.py",
        ("mechanisms/test_settings.py",),
        (Mutation("if self.penalty == type(self).penalty else", "if False else", "no warning of a worse default"),),
    ),
    Part(
        "dphist_pipeline/mechanisms/sreb_gca.py",
        ("mechanisms/test_grouping_mechanisms.py",),
        (
            Mutation('"exact": searches.least_', '"exact": searches.', "the greedy search in place of the exact one"),
            Mutation("searches.relative_groups_of_gp", "searches.relative_groups", "GGS in place of GP"),
            Mutation("domain.cells > MOST_EXACT:", "False:", "an exact search that takes hours"),
        ),
    ),
    Part(
        "dphist_pipeline/mechanisms/structure_first.py",
        ("mechanisms/test_structure_first.py", EVERY),
        (
            Mutation("            budget.forfeit()\n", "            pass\n", "less is spent than was charged"),
            Mutation(
                "        return first + int(chosen[0])\n", "        return int(chosen[0])\n", "buckets without a cell"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/mechanisms/kd_hierarchy.py",
        ("mechanisms/test_kd_hierarchy.py", EVERY),
        (
            Mutation("            budget.forfeit()\n", "            pass\n", "less is spent than was charged"),
            Mutation("values = (leaves / measured[-1].sizes)", "values = (leaves / 1)", "a box's sum in each cell"),
            Mutation("min(max(nearest, 1), slabs - 1)", "min(nearest, slabs)", "an empty half"),
        ),
    ),
    Part(
        "dphist_pipeline/mechanisms/dpcube.py",
        ("mechanisms/test_dpcube.py",),
        (
            Mutation("boxed.variance + boxed.sizes * noisy", "boxed.variance + noisy", "not the least squares"),
            Mutation(
                "noise_law(sums.scale(counts.sensitivity)).variance", "noise_law(sums.scale(1)).variance", "noise"
            ),
            Mutation(
                "self.threshold.paper - cell_variance", "self.threshold.paper", "the paper's threshold less the noise"
            ),
            Mutation('{"paper": written[1]} if written', "written[1] if written", "a threshold of a command line"),
        ),
    ),
    Part(
        "dphist_pipeline/mechanisms/privelet.py",
        ("mechanisms/test_privelet.py", "answering/test_linear_answers.py", "unit/test_tail_of_sums.py"),
        (
            Mutation(
                "levels = math.prod(1 +", "levels = sum(1 +", "noise that cannot be drawn is seen after the charge"
            ),
            Mutation("[widths[0], *widths[:-1]]", "widths", "another covariance than that of the noise"),
        ),
    ),
    Part(
        "dphist_pipeline/mechanisms/dawa.py",
        ("mechanisms/test_dawa.py",),
        (
            Mutation("structure.scale(2 * sensitivity)", "structure.scale(sensitivity)", "a share is refused too late"),
            Mutation("values = (fitted / levels[-1].sizes)", "values = (fitted / 1)", "a bucket's sum in each cell"),
        ),
    ),
    Part(
        "dphist_pipeline/mechanisms/ahp.py",
        ("mechanisms/test_grouping_mechanisms.py",),
        (
            Mutation(
                "np.where(noisy.values <= threshold, 0.0", "np.where(False, 0.0", "small counts are clustered alone"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/mechanisms/adaptive_grid.py",
        ("mechanisms/test_adaptive_grid.py",),
        (
            Mutation("half = (1 - self.total_share) / 2", "half = (1 - self.total_share) / 3", "epsilon is left over"),
            Mutation("consistent([upper.values, lower.values], [parents])[-1]", "lower.values", "grids do not agree"),
        ),
    ),
    Part(
        "dphist_pipeline/mechanisms/adaptive_boxes.py",
        ("mechanisms/test_adaptive_boxes.py",),
        (
            Mutation("third = (1 - TOTAL_SHARE) / 3", "third = (1 - TOTAL_SHARE) / 4", "epsilon is left over"),
            Mutation("noisy / (most * scale)", "noisy / most", "boxes are cut by the scale of the noise"),
            Mutation("float(total.values[0]) * rate /", "float(total.values[0]) /", "the first grid heeds epsilon"),
            Mutation(
                "NestedSums.of_levels(levels, [draw.parents for draw in boxes.draws[2:]])",
                "levels[-1]",
                "larger boxes have sums of their own",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/solvers/trees/refined_boxes.py",
        ("solvers/test_refined_boxes.py",),
        (
            Mutation("np.minimum(times, len(self", "np.maximum(times, len(self", "boxes are cut as often as is asked"),
            Mutation("(left_over - 1)[held]", "(left_over - 1)[held] * 0", "boxes are halved more than once"),
            Mutation("first[pair] + 1] = right[pair]", "first[pair]] = right[pair]", "the second half is the right"),
            Mutation("Evidence(noisy, np.full(noisy.size, scale))]", "NOTHING]", "every draw is evidence"),
            Mutation("Evidence(noisy, np.array([scale])), *", "NOTHING, *", "the total is evidence"),
        ),
    ),
    Part(
        "dphist_pipeline/mechanisms/workload.py",
        (
            "system/test_query_files.py::test_queries_outside_of_a_grid_are_refused",
            "system/test_query_files.py::test_queries_get_less_noise_and_other_axes_are_asked_cell_by_cell",
            "mechanisms/test_workload.py",
        ),
        (
            Mutation(
                "if not all(low < high <= ends.get(axis, 0) for", "if not all(True for", "a query beyond the grid"
            ),
            Mutation("(drawn.scale * weights).max()", "drawn.scale.min()", "the scale of the widest draw"),
        ),
    ),
    Part(
        "dphist_pipeline/solvers/trees/workload_strategies.py",
        (
            "system/test_query_files.py::test_queries_get_less_noise_and_other_axes_are_asked_cell_by_cell",
            "mechanisms/test_workload.py",
        ),
        (Mutation("np.full(cells, SINGLE_CELLS *", "np.full(cells, 0 *", "cells that no query tells apart"),),
    ),
    Part(
        "dphist_pipeline/solvers/trees/line_trees.py",
        ("solvers/test_line_trees.py", "mechanisms/test_workload.py"),
        (
            Mutation("share**4 * variance", "share**2 * variance", "the noise behind weighted draws"),
            Mutation("_add_to_cells(sums, boxes, share**2)", "_add_to_cells(sums, boxes, 1.0)", "levels by shares"),
            Mutation("(giver == len(shares) - 1)", "0", "single cells keep a part"),
            Mutation(
                "volume / math.sqrt(math.sqrt(math.sqrt(volume))) for volume",
                "volume for volume",
                "shares for boxes of sparse cells",
            ),
            Mutation("share * (TOTAL - WHOLE_GRID) // TOTAL", "share", "shares with that of the total add up"),
        ),
    ),
    Part(
        "dphist_pipeline/mechanisms/multiscale.py",
        (
            "mechanisms/test_multiscale.py::test_intervals_are_calibrated_to_the_widest_noise_that_a_box_may_hold",
            "mechanisms/test_multiscale.py::test_lines_heed_no_levels",
            "mechanisms/test_multiscale.py::test_the_smallest_share_must_be_one_that_can_be_drawn",
        ),
        (
            Mutation("(drawn.scale * weights).max()", "(drawn.scale * weights).min()", "intervals of unlike draws"),
            Mutation("and len(domain.shape) > 1", "", "lines heed no levels"),
            Mutation("epsilon * min(shares)", "epsilon * max(shares)", "the smallest share of a level"),
        ),
    ),
    Part(
        "dphist_pipeline/mechanisms/multiscale.py",
        tuple(
            f"mechanisms/test_multiscale.py::test_{name}"
            for name in (
                "overlapping_sums_of_a_grid_are_those_of_workload_and_the_total",
                "the_total_of_overlapping_sums_is_known_by_its_own_draw",
                "small_grids_and_long_axes_have_no_overlapping_sums",
                "overlapping_sums_need_an_epsilon_that_their_weights_can_be_drawn_by",
            )
        ),
        (
            Mutation("total = float(drawn.values[0])", "total = 0.0", "the total that was drawn"),
            Mutation("and max(domain.shape) <= LONGEST_LINE", "", "axes too long for a search"),
            Mutation("(1 if axes == 1 else 1 - TOTAL_SHARE)", "1", "the share of the total in what can be drawn"),
        ),
    ),
    Part(
        "dphist_pipeline/solvers/trees/sums_posterior.py",
        ("solvers/test_sums_posterior.py",),
        (
            Mutation("- own**2 * cells", "", "cells by themselves are counted once"),
            Mutation("lacking[tuple(map(slice, own.shape))] = 0.0", "pass", "cells are not asked for again"),
            Mutation("-told * each for told", "0.0 * each for told", "stand-ins are divided out"),
            Mutation("+ (1.0 - part) * of_right", "+ part * of_right", "the other half's part"),
            Mutation("(sums[number + 1][left] - self.part", "(sums[number + 1][left] + self.part", "splits by parts"),
            Mutation("if not (curved := float(step @ image)) > 0.0 or", "if", "equations that are not positive"),
        ),
    ),
    Part(
        "dphist_pipeline/solvers/trees/_halved_boxes.py",
        ("solvers/test_sums_posterior.py",),
        (
            Mutation("own.noisy[chosen]", "own.noisy[: chosen.size]", "evidence of a piece is its own"),
            Mutation("np.linspace(0, boxes - 1,", "np.linspace(0, 0,", "pieces lie over all of the grid"),
        ),
    ),
    Part(
        "dphist_pipeline/mechanisms/tables.py",
        ("system/test_families.py", EVERY),
        (
            Mutation(
                "smallest < SMALLEST_EPSILON or sensitivity / smallest > LARGEST_SCALE", "False", "noise for no table"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/solvers/groups/bucket_splits.py",
        ("solvers/test_bucket_splits.py",),
        (
            Mutation("max(used - first, 0)", "max(used - first - 1, 0)", "a split with a bucket of no cell"),
            Mutation("mean * (total + rest) - rest * rest // size", "mean * (total + rest)", "squares rounded wrongly"),
            Mutation("step = max(1, BLOCK // cells)", "step = cells", "a table of 2 GB in memory"),
        ),
    ),
    Part(
        "dphist_pipeline/solvers/groups/relative_groups.py",
        ("solvers/test_relative_groups.py",),
        (
            Mutation("(end < place + 2 or", "(end < place + 1 or", "a group of one value, which GP does not have"),
            Mutation(
                "total -= (values[place + 1] - values[place]) * (end - place - 1)",
                "total -= 0",
                "sums from an old start",
            ),
            Mutation("            if cost < best:\n", "            if cost > best:\n", "the worst groups"),
            Mutation("least[start] + max(apart, 0.0)", "max(apart, 0.0)", "the groups before cost nothing"),
        ),
    ),
    Part(
        "dphist_pipeline/solvers/groups/absolute_deviation.py",
        ("solvers/test_bucket_splits.py", "solvers/test_absolute_deviation.py"),
        (Mutation("reach = np.iinfo(np.int64).max // counts.size", "reach = 1 << 60", "sums of long lines wrap"),),
    ),
    Part(
        "dphist_pipeline/solvers/trees/haar.py",
        ("solvers/test_haar.py",),
        (Mutation("left, sums - left], axis=1)", "left, left], axis=1)", "halves that do not sum to the whole"),),
    ),
    Part(
        "dphist_pipeline/solvers/whole_counts/firm_sums.py",
        ("solvers/test_firm_sums.py",),
        (Mutation("np.minimum(values, between)", "values - thresholds", "a shift, which large parts pay"),),
    ),
    Part(
        "dphist_pipeline/solvers/whole_counts/population.py",
        ("solvers/test_population.py",),
        (Mutation("of.nested[axis] and one % 4 != 0", "False", "moves that leave their region"),),
    ),
    Part(
        "dphist_pipeline/solvers/whole_counts/nested_rounding.py",
        ("solvers/test_nested_rounding.py",),
        (
            Mutation("rank < spare[:, in_order]", "rank <= spare[:, in_order]", "whole counts above their sum"),
            Mutation("_by_remainder(owed, whole_of) if", "_by_remainder(0 * owed, whole_of) if", "the first parts"),
            Mutation("owed - leaning, np.inf", "owed, np.inf", "what else is known of parts is lost"),
        ),
    ),
    Part(
        "dphist_pipeline/solvers/trees/tree_consistency.py",
        ("solvers/test_tree_consistency.py", "solvers/test_regular_tree.py"),
        (
            Mutation("share = variance / (variance + below_spread[node])", "share = 0.5", "not the least squares"),
            Mutation("children += lacking.reshape(", "children += 0 * lacking.reshape(", "levels that do not agree"),
        ),
    ),
    Part(
        "dphist_pipeline/solvers/groups/segmentation.py",
        ("solvers/test_segmentation.py",),
        (
            Mutation("dearest, paid = price + cheapest,", "dearest, paid = max(price, cheapest),", "pruned too early"),
            Mutation("weights=values - centre) / sizes", "weights=values - centre) / sizes.max()", "means of buckets"),
        ),
    ),
    Part(
        "dphist_pipeline/solvers/groups/line_groups.py",
        ("solvers/test_line_groups.py",),
        (Mutation("error += off * (line[start] - mean)", "error += off * off", "another cost than is said"),),
    ),
    Part(
        "dphist_pipeline/solvers/trees/hilbert.py",
        ("solvers/test_hilbert.py",),
        (Mutation("    for place in places:\n        place ^= flips\n", "", "a curve that jumps"),),
    ),
    Part(
        "dphist_pipeline/solvers/cells/_shared_level.py",
        ("solvers/test_shared_level.py",),
        (Mutation("error = DOUBT * unit**2 / noisy.size", "error = 0.0 * unit", "noise is taken for a level"),),
    ),
    Part(
        "dphist_pipeline/solvers/whole_counts/marginal_fit.py",
        ("solvers/test_marginal_fit.py",),
        (
            Mutation("return np.maximum(shifted, 0.0, out=fitted)", "return shifted", "whole counts below 0"),
            Mutation("gap = one.sums(fitted) - one.targets - one", "gap = one.targets - one", "other sums than wanted"),
        ),
    ),
    Part(
        "dphist_pipeline/solvers/tables/shrunk_interactions.py",
        ("solvers/test_shrunk_interactions.py",),
        (
            Mutation(
                "((1 - factors) ** 2) * clear", "((1 - factors) ** 2) * squares", "noise is taken for interaction"
            ),
            Mutation("model = model * factors", "model = model + factors", "margins that are added"),
            Mutation("if away.ndim > 2 else 0.0", "if away.ndim > 9 else 0.0", "triples of noise count as real"),
            Mutation(
                "away = _deviations(values - model)",
                "away = values - model",
                "noise of margins is an interaction",
            ),
        ),
    ),
)
