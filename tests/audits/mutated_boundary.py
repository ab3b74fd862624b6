"""Alone: `python tests/audits/mutations.py --only '/(confidential|estimates)/'`;
one: `--only 'measurements.py: the scale'`.

Mutations of the privacy boundary: measurements, noise, queries, scores, bounding, the journal, and public budgets.
"""

from __future__ import annotations

from mutations import Mutation, Part

BOUNDARY = (
    Part(
        "dphist_pipeline/confidential/measurements.py",
        (
            "unit/test_choice.py",
            "unit/test_contrasts.py",
            "unit/test_weighted_sums.py",
            "unit/test_ends_of_noise.py",
            "unit/test_buckets.py",
            "unit/test_measurements.py",
            "unit/test_split_amounts.py",
            "attacks/test_mechanisms_that_peek.py",
        ),
        (
            Mutation("(self.sensitivity * self.__parts),", "(self.__parts),", "noise for Δ = 1"),
            Mutation(
                "(self.sensitivity * self.__parts),", "(self.sensitivity),", "noise for parts as if they were rows"
            ),
            Mutation("if self.__parts > 1 and type(query)", "if False and type(query)", "sums of parts told as rows"),
            Mutation("scale = sensitivity / budget", "scale = sensitivity / 2 / budget", "the scale is halved"),
            Mutation("str(budget.spend())", "str(budget.epsilon)", "a measurement spends nothing"),
            Mutation(
                "type(budget) is not Budget or", "not isinstance(budget, Budget) or", "subclasses buy a measurement"
            ),
            Mutation(
                "if not SMALLEST_EPSILON <= budget.epsilon <= LARGEST_EPSILON:",
                "if not SMALLEST_EPSILON <= budget.epsilon:",
                "a budget that was enlarged buys a measurement",
            ),
            Mutation("np.argmax(part + more)", "np.argmax(part)", "a choice without noise"),
            Mutation("[part - less for part, less", "[part - 0 * less for part, less", "buckets without noise"),
            Mutation("noisy if fits else", "noisy if True else", "sums of large noisy costs wrap around"),
            Mutation('"partition": query.digest', '"partition": ""', "the journal forgets which groups were asked"),
            Mutation(
                "WeightedSums(_unpack_lines(stored_lines, self",
                "query or (_unpack_lines(stored_lines, self",
                "a run goes on with its own weights",
            ),
            Mutation(
                "budget.epsilon * min(level_shares)",
                "budget.epsilon * max(level_shares)",
                "a tree is refused half drawn",
            ),
            Mutation("part.clip(-LARGEST_SCORE, LARGEST_SCORE)", "part", "a large score plus noise wraps around"),
            Mutation(
                "self.__scales[budget.step] = scale", "self.__scales['counts'] = scale", "scales under a wrong step"
            ),
            Mutation("if index(sensitivity) < 1:", "if index(sensitivity) < 0:", "a sensitivity of 0: no noise"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/noise.py",
        ("unit/test_certified.py", "unit/test_ends_of_noise.py", "statistical/test_noise.py"),
        (
            Mutation('side="right"', 'side="left"', "a word on a threshold goes the wrong way"),
            Mutation("below == up_to", "below <= up_to", "a word beside a threshold is decided by its first bits"),
            Mutation("if prefix > threshold:", "if prefix >= threshold:", "a refinement ends while it is open"),
            Mutation("(words & np.uint64(1))", "(words & np.uint64(2))", "the sign is a bit of the magnitude"),
            Mutation(
                "return _geometric(scale, size) - _geometric(scale, size)",
                "return _geometric(scale, size) - _geometric(scale, 1)",
                "large noise shares one of its two parts",
            ),
            Mutation("    _self_test()\n    return _draw", "    return _draw", "a broken sampler draws for a release"),
            Mutation(
                "    _self_test()\n    noise = np.empty",
                "    noise = np.empty",
                "a broken sampler draws for a private choice",
            ),
            Mutation(
                "if abs(spread - expected) > 8 * sigma / root:",
                "if abs(spread - expected) > 800 * sigma / root:",
                "the self-test takes any spread",
            ),
            Mutation("if abs(float(noise.mean())) > 8", "if abs(float(noise.mean())) > 800", "and any mean"),
            Mutation("LARGEST_NOISE = 1 << 53", "LARGEST_NOISE = 1 << 52", "noise ends where counts do"),
        ),
    ),
    Part(
        "dphist_pipeline/base/random_words.py",
        ("unit/test_certified.py", "statistical/test_noise.py"),
        (
            Mutation("_keystream(os.urandom(32), os", "_keystream(bytes(32), os", "the key of all noise is known"),
            Mutation(
                "os.urandom(8), size)",
                "bytes(8), size)",
                "the nonce is known",
                "the key is new in every call, so a key stream is never used again",
            ),
            Mutation("if block != CHACHA20_OF_ZEROS:", "if not block:", "another cipher than ChaCha20 is taken"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/_queries.py",
        (
            "unit/test_contrasts.py",
            "unit/test_weighted_sums.py",
            "unit/test_choice.py",
            "unit/test_buckets.py",
            "unit/test_measurements.py",
            "golden/test_queries_to_measurements.py",
            "attacks/test_mechanisms_that_peek.py",
        ),
        (
            Mutation("math.prod(1 + (size", "math.prod((size", "the total is forgotten"),
            Mutation("math.prod(1 + (size", "max(1 + (size", "the noise of cubes is that of one axis"),
            Mutation(
                "numbers.max() >= numbers.size",
                "numbers.max() > numbers.size",
                "a group number as large as the number of cells",
                "it leaves another number out, which the next check refuses",
            ),
            Mutation(
                "np.bincount(cells).max() > 1", "np.bincount(cells).max() > 2", "a cell in two groups of a choice"
            ),
            Mutation('"groups", numbers.ravel())', '"groups", self.groups.ravel())', "groups can change while asked"),
            Mutation("score = own_copy(self.score)", "score = self.score", "a foreign score runs on exact counts"),
            Mutation("np.clip(high, -2 * room, 2 * room)", "high", "large sums wrap around"),
            Mutation("line).sum(axis=0).max())", "line).sum(axis=0).min())", "noise for the lightest cell"),
            Mutation("int(np.abs(line).sum(", "int(line.sum(", "weights of two signs cancel"),
            Mutation(
                "high, low = high + (low >> HALF_BITS),", "high, low = high,", "what the low halves carry is lost"
            ),
            Mutation("((high.clip(-2 * room, 2 * room) <<", "((high <<", "large weighted sums wrap around"),
            Mutation("np.append(len(line), line.ravel())", "line.ravel()", "a digest without how many sums there are"),
            Mutation("        return 2 * delta\n", "        return delta\n", "half the noise of buckets"),
            Mutation("np.bincount(line).max() > 1", "np.bincount(line).max() > 2", "a cell twice on a line"),
            Mutation("np.array(self.savings, dtype=np.int64), ", "", "a digest without what levels save"),
            Mutation("np.append(group, -1) for group", "group for group", "other groups of equal cells look alike"),
            Mutation("np.array(self.candidates, dtype=np.int64), *", "*", "a digest without the candidates"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/scores.py",
        ("unit/test_choice.py", "mechanisms/test_scores.py", "attacks/test_mechanisms_that_peek.py"),
        (
            Mutation("return 2 * self.constant * delta", "return self.constant * delta", "half the noise of a choice"),
            Mutation(
                "return 2 * self.count_ceiling - 1", "return 2 * self.count_ceiling - 2", "a constant that is 1 too low"
            ),
            Mutation('return 1 if self.centre == "median" else 2', "return 1", "half the noise of means"),
            Mutation("-np.abs(exact[1:] - exact[0]) - self.steps", "-2 * np.abs(exact[1:] - exact[0])", "moves by 2"),
            Mutation("steps.min() < 0 or", "", "steps may be negative and favour a cell"),
            Mutation('whole_number(self.price, "the price of a cut", 0', 'whole_number(self.price, "x", -9', "a bonus"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/_plain_values.py",
        ("unit/test_measurements.py", "attacks/test_mechanisms_that_peek.py", "mechanisms/test_scores.py"),
        (
            Mutation("type(value) is not int or", "not isinstance(value, int) or", "numbers with methods of their own"),
            Mutation("np.asarray(values)", "np.asanyarray(values)", "arrays with methods of their own"),
            Mutation('order="C")', 'order="C", copy=False)', "arrays that a mechanism can still change"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/_bounding.py",
        ("unit/test_bounding.py", "unit/test_split_amounts.py"),
        (
            Mutation("parts, codes, more * of_row)", "parts, codes, of_row)", "parts of rows that are not kept"),
            Mutation("hashed.height < most", "True", "a unit with very many rows is counted in part"),
            Mutation("broadcast_to(np.int64(1), hashed.height)", "broadcast_to(np.int64(2), hashed.height)", "twice"),
            Mutation(
                "group_by(*words).agg(rows=pl.len())",
                "group_by(*words).agg(rows=pl.len() * 0 + 1)",
                "equal rows of several words count as one",
            ),
            Mutation(
                'unit").hash(int.from_bytes(sha256(b"units" + key)',
                'unit").hash(int.from_bytes(sha256(b"")',
                "who shares a hash can be foreseen",
            ),
            Mutation("number = 1 + pl.scan", "number = 1 or pl.scan", "all rows are in memory at once"),
            Mutation("memory_limit() // bytes_each", "memory_limit()", "no limit of memory holds"),
            Mutation("digest()[:8] for unit", "digest()[8:16] for unit", "Spark keeps other rows"),
            Mutation("np.uint64(4)\n", "np.uint64(0)\n", "words that an engine takes for negative numbers"),
            Mutation(
                "for word in codes:", "for word in codes[:1]:", "rows of one unit that differ in another word tie"
            ),
            Mutation("_mix(place + word", "(place + word", "the order favours cells"),
            Mutation("return _mix(place + copies", "return (place + copies", "the order favours copies"),
            Mutation(
                "return words ^ (words >> np.uint64(LAST_SHIFT))", "return words", "the order favours cells a little"
            ),
            Mutation("[pl.Int32]", "[pl.Int64]", "a position along all axes is taken for a cell's number"),
            Mutation("if parts == 1 and", "if", "a pass with very many rows is in memory at once"),
            Mutation('int(hashes["len"].sum()) // (2 * most)', "0", "a unit with very many rows is in memory at once"),
            Mutation(
                '(pl.col("len").cast(pl.Int64).cum_sum() - pl.col("len")) // most',
                "pl.lit(0)",
                "all rows above the bound are in memory at once",
            ),
            Mutation('("len") > max_rows', '("len") > max_rows + 1', "units of R + 1 rows keep all"),
            Mutation(".head(max_rows)", ".head(max_rows + 1)", "one row of a unit too many"),
            Mutation('-pairs["copies"]', '0 * pairs["copies"]', "rows counted twice"),
            Mutation("sha256(key + unit.encode())", "sha256(unit.encode())", "everybody knows which rows are kept"),
            Mutation(
                'if (rows["unit"] == units.gather(rows["number"])).all():',
                "if True:",
                "two units whose names have one hash are bounded together",
            ),
            Mutation("packed = packed * size +", "packed = packed +", "rows of other units are copies"),
            Mutation("else pl.concat([kept, block])", "else block", "a unit is bounded in every block"),
            Mutation(
                '"number", "place", *words, "copy")', '"number")', "the order of the engine decides which rows are kept"
            ),
            Mutation("copy = np.arange(rows.size)", "copy = 0 * np.arange(rows.size)", "copies tie"),
            Mutation("np.maximum(begin - before, 0)", "np.maximum(0 - before, 0)", "rows stand in several blocks"),
            Mutation("% number == remainder", "% number <= remainder", "rows stand in several slices"),
            Mutation("part_of == part)", "part_of <= part)", "rows stand in several parts"),
            Mutation(".drop_nulls(words)", "", "rows in no cell count"),
            Mutation("part.unique()", "part.unique(words)", "equal rows of two units are one row"),
            Mutation(
                "yield part.unique() if",
                'yield part.group_by("unit", maintain_order=True).head(2).unique() if',
                "equal rows become one row after the bound",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/unit_values.py",
        ("unit/test_unit_rows.py",),
        (
            Mutation("np.roll(block.units, 1) == block.units", "(block.days >= 0)", "days since a stranger's row"),
            Mutation("key = block.units * (int(", "key = 0 * block.units * (int(", "new to somebody else"),
            Mutation("max(0, days.size - self.most)", "max(0, days.size - 1)", "numbers begin anew with each batch"),
            Mutation("counts[:1] += self.counted", "counts[:1] += 0", "visits of an earlier batch are forgotten"),
            Mutation("place.size - 1 - last", "0 * last", "values of an earlier batch are new again"),
            Mutation("is_cut * (parts + 1)", "is_cut * 0", "amounts that were cut are not told"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/reading/_unit_rows.py",
        ("unit/test_unit_rows.py",),
        (
            Mutation("return new[new >= block.carried]", "return new", "carried rows are counted twice"),
            Mutation("inside=days >= self._first_day,", "inside=days >= 0,", "history is counted"),
            Mutation("edge = edge[:complete]", "edge = edge[:]", "a unit that goes on is taken twice"),
            Mutation(
                "[rows.height - 1, block.first_of_period[unit]]", "[rows.height - 1]", "the first row is forgotten"
            ),
            Mutation("shares - is_cut * (plan.parts + 1)", "shares", "an amount that was cut is more than a row"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/engines/spark.py",
        ("unit/test_spark_engine.py",),
        (
            Mutation("OR rank <= {most}", "OR rank <= {most} + 1", "Spark keeps one row of a unit too many"),
            Mutation("HAVING count(*) > {most}", "HAVING count(*) > {most} + 1", "and of some units only"),
            Mutation("if not exact:", "if False:", "an engine with another arithmetic counts"),
            Mutation("or before != _footers(files, where)", "", "a file changes while it is read"),
            Mutation("not as_it_stands", "False", "one row makes a release fail"),
            Mutation("logger.disabled = True", "pass", "PySpark logs an engine's message, values and all"),
            Mutation('file.name.startswith(("_", "."))', "False", "a file is left out"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/row_queries.py",
        ("unit/test_row_queries.py", "unit/test_misfiled_rows.py"),
        (
            Mutation("return 2 if self.substitute else 1", "return 1", "half the noise under substitution"),
            Mutation("        return limits.seen - limits.kept\n", "        return 1\n", "noise for one row cut"),
            Mutation("limits.parts * (limits.seen - limits.kept)", "limits.seen - limits.kept", "and by category"),
            Mutation("limits.parts * limits.seen * self.axes", "limits.parts * limits.seen", "a row fails on one axis"),
            Mutation(
                "        return limits.parts * limits.seen\n", "        return limits.parts\n", "a unit has one row"
            ),
            Mutation("not 1 <= self.kept <= self.seen", "not 1 <= self.kept", "a sensitivity below 0"),
            Mutation("        return limits.seen\n", "        return 1\n", "noise for one misfiled row"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/row_tables.py",
        (
            *("unit/test_row_queries.py", "unit/test_row_marks.py", "unit/test_misfiled_rows.py"),
            *("unit/test_split_amounts.py", "attacks/test_exact_files_that_stay.py"),
        ),
        (
            Mutation("clip(upper_bound=seen)", "clip(upper_bound=seen + 1)", "what lies beyond T is told"),
            Mutation("staged, marks, seen, key", "staged, marks, seen + 1, key", "failures of T + 1 rows"),
            Mutation("plan.domain.cells, seen, key,", "plan.domain.cells, seen + 1, key,", "and cut"),
            Mutation(
                "_rows_by_unit(rows, seen).select(",
                'rows.group_by("unit").agg(rows=pl.len()).select(',
                "a unit has any number of misfiled rows",
            ),
            Mutation("    (folder / FILE).unlink()\n", "", "exact numbers stay"),
            Mutation("allow_pickle=False", "allow_pickle=True", "numbers may be code"),
            Mutation("cut[: plan.domain.of_rows.shape[0]].sum", "cut.sum", "a row that is cut counts once an axis"),
            Mutation("return first - bounded", "return first", "rows of a family that are kept count as cut"),
            Mutation("(first - counts).reshape", "first.reshape", "rows that are kept count as cut"),
            Mutation('["rows"].to_numpy() - 1]', '["rows"].to_numpy() - 2]', "units count for a row fewer"),
            Mutation("rows[digit == failure].sum()", "(digit == failure).sum()", "equal rows fail once"),
            Mutation("digit == failure]", "digit >= failure]", "undeclared values count as unparsed"),
            Mutation("(number - within[0])", "number", "failures of another axis"),
            Mutation("np.maximum(place, np.where", "(0 * place + np.where", "the last axis decides a row's place"),
            Mutation("2 if axes", "1 if axes", "dropped rows count as others"),
            Mutation("| ((digit == UNDECLARED) &", "& ((digit == UNDECLARED) &", "a cut amount drops its row"),
            Mutation("first, _ = count_amounts", "_, first = count_amounts", "parts that are cut count as rows"),
            Mutation("staged, marks)[1].sum()", "staged, marks)[1].size", "equal misfiled rows count once"),
            Mutation(
                'if plan.marginals else ["code"]',
                'if plan.marginals else ["marks"]',
                "units without a row in a cell are told",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/_table_counts.py",
        (
            "system/test_families.py::test_without_units_over_the_bound_marginals_are_plain_counts",
            "system/test_families.py::test_all_marginals_count_the_same_rows_at_most_r_of_a_unit",
            "system/test_families.py::test_every_marginal_moves_by_at_most_r_rows_of_a_unit",
        ),
        (
            Mutation("plan.max_rows_per_unit, key", "plan.max_rows_per_unit + 1, key", "R + 1 rows a unit"),
            Mutation("cells * size + (", "cells + (", "cells of a table run together"),
            Mutation("if groups is None else groups[places[axis]]", "", "a level counts the positions below it"),
            Mutation("// stride %", "// 1 %", "positions of another axis"),
            Mutation("range(0, rows.size, CHUNK_ROWS)", "range(0, CHUNK_ROWS, CHUNK_ROWS)", "rows are left out"),
            Mutation("np.add.at(table, cells, rows)", "np.add.at(table, cells, 1)", "equal rows count once"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/cube.py",
        (
            *("attacks/test_exact_files_that_stay.py", "unit/test_source_formats.py", "unit/test_ingest.py"),
            *("unit/test_bounding.py", "unit/test_misfiled_rows.py", "unit/test_split_amounts.py"),
        ),
        (
            Mutation(
                "    key = secrets.token_bytes(KEY_BYTES)",
                "    key = bytes(KEY_BYTES)",
                "the same rows are kept each time",
            ),
            Mutation("    staged.unlink()\n", "", "staged rows stay"),
            Mutation("allow_pickle=False", "allow_pickle=True", "a cube may be code"),
            Mutation(
                "plan.domain.cells, plan.max_rows_per_unit, key,",
                "plan.domain.cells, plan.max_rows_per_unit + 1, key,",
                "R + 1 rows a unit",
            ),
            Mutation(
                "grid.cells, plan.max_rows_per_unit, key)",
                "grid.cells, plan.max_rows_per_unit + 1, key)",
                "and of split rows",
            ),
            Mutation("(rows * plan.parts - upper, upper)", "(upper, upper)", "all parts of a row lie at both ends"),
            Mutation(
                "with guarded_polars():\n        counted", "if True:\n        counted", "Polars prints and spills"
            ),
            Mutation("with guarded_polars():\n        rows", "if True:\n        rows", "and over misfiled rows"),
            Mutation(
                "withheld(plan.source.written, problem, lambda: row_tables.first_rows(plan, seen, outside, key))",
                "row_tables.first_rows(plan, seen, outside, key)",
                "what Polars says of misfiled rows is shown",
            ),
            Mutation("    outside.unlink()\n", "", "misfiled rows stay"),
        ),
    ),
    Part(
        "dphist_pipeline/base/guarded_polars.py",
        ("unit/test_guarded_polars.py", "unit/test_bounding.py"),
        (
            Mutation("_nothing_spilled(), _silence()", "_silence()", "rows are written to /var/tmp"),
            Mutation("ONE_AT_A_TIME, ", "", "a process that counts twice at once says nothing more"),
            Mutation('{"environment": before}', '{"environment": UNLIMITED}', "nothing of the process spills any more"),
            Mutation("    os.dup2(nowhere, 2)\n", "", "Polars prints what it panics about"),
            Mutation("os.dup2(before, 2)", "pass", "a process says nothing more after it has counted"),
            Mutation("before = -1\n", "raise\n", "a process without a standard error counts nothing"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/_frame_files.py",
        ("unit/test_guarded_polars.py",),
        (
            Mutation(
                "        with guarded_polars():\n", "        if True:\n", "rows of a frame are written to /var/tmp"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/journal.py",
        ("unit/test_journal.py",),
        (
            Mutation("        sync_folder(self._folder)\n", "", "an answer is used before its name is durable"),
            Mutation("        self._vouch(step, digest)\n", "", "no witness is asked"),
            Mutation("os.link(scratch, final)", "os.replace(scratch, final)", "the loser of a race draws again"),
            Mutation(', "charge": self._charge}', "}", "an answer of another charge is used"),
            Mutation("os.urandom(32).hex()", '"00" * 32', "the witness holds a digest that gives the answer away"),
            Mutation(
                'write_durably(scratch, json.dumps(header, sort_keys=True).encode() + b"\\n", payload)',
                'scratch.write_bytes(json.dumps(header, sort_keys=True).encode() + b"\\n" + payload)',
                "an answer is not durable, and others may read it",
            ),
            Mutation(
                "        if not final.exists():\n            refusal",
                "        if True:\n            refusal",
                "exact counts are loaded in vain",
            ),
            Mutation("refusal = self._elsewhere(step)", "refusal = None", "an answer that is known elsewhere is drawn"),
            Mutation("elif not final.exists():", "else:", "another run of this store, a moment before, stops this one"),
        ),
    ),
    Part(
        "dphist_pipeline/base/files.py",
        ("unit/test_journal.py",),
        (
            Mutation("flush()\n        os.fsync(file.fileno())\n", "flush()\n", "content is not durable"),
            Mutation("        os.fsync(handle)\n", "        pass\n", "names are not durable"),
            Mutation("os.O_EXCL, 0o600)", "os.O_EXCL, 0o644)", "others may read exact or noisy counts"),
            Mutation("        sync_folder(path.parent)\n\n\ndef sync", "\n\ndef sync", "a new folder may vanish"),
        ),
    ),
    Part(
        "dphist_pipeline/estimates/budget.py",
        ("unit/test_budget.py", "unit/test_measurements.py"),
        (
            Mutation("if sum(parts.values()) != 1:", "if sum(parts.values()) < 1:", "shares spend more than there is"),
            Mutation("        child._charges = self._charges\n", "", "what shares spend is not told"),
            Mutation("        if self._used:\n", "        if False:\n", "a budget is spent twice"),
            Mutation("        if entry in self._charges:\n", "        if False:\n", "two charges count as one"),
            Mutation(
                "for part in parts:\n            part.scale",
                "for part in parts[:1]:\n            part.scale",
                "one share",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/estimates/certified.py",
        ("unit/test_certified.py",),
        (
            Mutation("            if low == high:\n", "            if high - low <= 1:\n", "a floor that is 1 too low"),
            Mutation("max(0, low - term_high), high + term_high", "low, high", "the rest of the series is forgotten"),
            Mutation(
                "k >= self.below",
                "k > self.below",
                "a value beyond the end",
                "its probability is 0 by the formula, too",
            ),
            Mutation(
                "high = _ceil_divide(high * step_high, 1 << precision)",
                "high = (high * step_high) >> precision",
                "an upper end is rounded down",
            ),
            Mutation("(one + low, one + high)", "(one + low, one + low)", "an enclosure that is too narrow"),
            Mutation("return threshold < bound", "return threshold <= bound", "a bound that is met is missed"),
        ),
    ),
    Part(
        "dphist_pipeline/estimates/laws/_laplace.py",
        ("statistical/test_noise.py",),
        (
            Mutation("law.at_most(c + 1, outside)", "law.at_most(c, outside)", "an interval that is one too wide"),
            Mutation(
                "c > 0 and law.at_most(c, outside)",
                "c > 0 and law.at_most(c - 1, outside)",
                "one too narrow",
                "the first guess is below the result",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/estimates/laws/_report_law.py",
        ("answering/test_reported_answers.py", "statistical/test_report_intervals.py"),
        (
            Mutation("np.maximum(count, 0.0)) for", "count) for", "negative estimates lower the variance"),
            Mutation("self.delta * atoms_once * counts_once)", "self.delta * counts_once)", "a term without its atoms"),
            Mutation("return self.gamma + self.delta * np", "return self.gamma - self.delta * np", "a slope's sign"),
        ),
    ),
    Part(
        "dphist_pipeline/estimates/noisy.py",
        ("answering/test_linear_answers.py", "answering/test_intervals.py"),
        (
            Mutation("int(counts @ counts)", "int(counts.sum())", "shared noise counts as apart"),
            Mutation(
                "half_width_of_sum(self.draws * cells, level) if cells else 0",
                "half_width_of_sum(cells or 1, level)",
                "an empty box is not 0",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/row_filter.py",
        ("unit/test_individual_accounts.py",),
        (
            Mutation("facts.items() <= found.items() and ", "", "the state of another charge, or form, counts"),
            Mutation(" and file.read(DIGITS) == checksum", "", "a state that was changed by hand counts"),
            Mutation("before.key if before is not None else", "", "nobody is known again: each charge begins anew"),
            Mutation("    sync_file(path)\n", "", "a charge outlives its state"),
            Mutation("before=NOBODY if before is None else", "before=NOBODY if True else", "nobody has paid before"),
            Mutation("price=str(price)", "price='1'", "rows cost nothing"),
            Mutation(
                "np.count_nonzero(left == 2)",
                "np.count_nonzero(left >= 1)",
                "a unit is left out for the first time twice",
            ),
            Mutation('f"(SELECT DISTINCT * FROM {rows})" if', "rows if", "each of equal rows is paid"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/cube.py",
        ("unit/test_individual_accounts.py",),
        (
            Mutation(
                "replace(plan, max_rows_per_unit=rows), file, key",
                "plan, staged, key",
                "all R rows of a unit count that could pay for fewer",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/_individual_charge.py",
        ("unit/test_individual_accounts.py",),
        (
            Mutation(
                "if self._counted[0] != granted.state:",
                "if not self._counted[0]:",
                "who joins draws what it counted for a charge of its own",
            ),
            Mutation("            everybody += epsilon\n", "", "a lost state is as if nothing was paid"),
            Mutation(
                "            if charge is not None and charge.year != year:", "            if False:", "two numbers"
            ),
            Mutation("return state, charge, everybody + charge", "return state, charge, 0 * charge", "older losses"),
            Mutation("and charge.year == year:", "and charge.year:", "a state of another year counts"),
            Mutation("settled = books.state(charge) not in OPEN_STATES", "settled = True", "a charge lacks its state"),
            Mutation("charge.number < before.number", "True", "the newest states are forgotten within their year"),
            Mutation("        with states.lock():\n", "        with suppress(ValueError):\n", "two charges at once"),
            Mutation("            states.forget()\n", "", "what is no state stays"),
        ),
    ),
)
