"""Alone: `python tests/audits/mutations.py --only /spec/`; one: `--only 'periods.py: no delay'`.

Mutations of specs: queries, digests, periods, code lists, numbers and axes.
"""

from __future__ import annotations

from mutations import Mutation, Part

MODEL = ("unit/test_spec_model.py",)
AXES = ("unit/test_spec_axes.py",)
LISTS = ("attacks/test_code_lists_that_read.py", "unit/test_code_lists.py")
QUERIES = ("attacks/test_queries_that_reach.py", "unit/test_row_queries.py", "unit/test_row_functions.py")

SPEC = (
    Part(
        "dphist_pipeline/spec/_query_reach.py",
        QUERIES,
        (
            Mutation("_folded(name) not in visible | {SOURCE}:", "False:", "a query reads a file by its name"),
            Mutation("if name.lower() not in TABLE_FUNCTIONS:", "if False:", "read_csv() reads any file"),
            Mutation("    if name.lower() not in ALLOWED:\n", "    if False:\n", "any function is called"),
            Mutation(
                "    if name.lower() in CHANGING:\n", "    if False:\n", "a refusal of random() says nothing of it"
            ),
            Mutation(
                "    if name.lower() == SOURCE:\n", "    if False:\n", "WITH puts other rows in the place of records"
            ),
            Mutation("    if not reads.source:\n", "    if False:\n", "a query of no records is released"),
            Mutation(
                "return name.lower() if name.isascii() else name", "return name.lower()", "a name that DuckDB knows not"
            ),
            Mutation("        visible |= {name}\n", "        pass\n", "a table of WITH is refused"),
            Mutation("if reads.level > MOST_LEVELS:", "if False:", "a query nested without end"),
        ),
    ),
    Part(
        "dphist_pipeline/spec/_row_queries.py",
        QUERIES,
        (
            Mutation("            _check_unit(items, unit)\n", "", "a query makes every visit another person"),
            Mutation("not left_out and not outputs", "not outputs", "a unit that EXCLUDE leaves out"),
            Mutation(
                "            if not error.allowable:\n", "            if False:\n", "a decision lets anything pass"
            ),
            Mutation(
                '        if node.get(part) not in (None, [], {"map": []}):\n', "        if False:\n", "LIMIT by row"
            ),
            Mutation("            _check_constants(parser, runs, columns)\n", "", "a constant that is no date"),
            Mutation("    return in_try(node)\n", "    return node\n", "one row makes a release fail"),
        ),
    ),
    Part(
        "dphist_pipeline/spec/_row_functions.py",
        QUERIES,
        (Mutation('raises=name in ("week", "isoyear")', "raises=False", "a date far off makes a release fail"),),
    ),
    Part(
        "dphist_pipeline/spec/_query_parsing.py",
        QUERIES,
        (
            Mutation('"enable_external_access": False', '"enable_external_access": True', "a check reads files"),
            Mutation("    if len(statements) != 1:\n", "    if not statements:\n", "a second statement is not judged"),
            Mutation("    if text != again:\n", "    if False:\n", "other text runs than was judged"),
            Mutation(
                "file.resolve().suffix.lower()} != {ENDING}", "'.sql'} != {ENDING}", "a link to any file is quoted"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/spec/fields.py",
        (*MODEL, "local/test_collection.py"),
        (
            Mutation("if in_digest(of, name) and name not in unused", "if name not in unused", "a title is charged"),
            Mutation(
                "in_digest(of, name) and name not in unused", "in_digest(of, name)", "old periods ask for --revise"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/spec/model.py",
        (*MODEL, "unit/test_quality_spec.py", "unit/test_code_lists.py"),
        (
            Mutation(
                "return 2 * max_rows_per_unit if", "return max_rows_per_unit if", "half the noise of substitution"
            ),
            Mutation('if info.data.get("privacy_unit") == EVERY_ROW and bound != 1:', "if False:", "row with a bound"),
            Mutation(
                "            if sensitivity / epsilon > LARGEST_SCALE:\n",
                "            if False:\n",
                "noise without end",
            ),
            Mutation("self.epsilon * (1 - self.quality.share)", "self.epsilon", "quality is bought in vain"),
            Mutation(
                "                mechanism.check(self.domain, self.sensitivity, self.mechanism_epsilon)\n",
                "                pass\n",
                "a mechanism is refused after the charge",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/spec/model.py",
        (
            "unit/test_source_sql.py::test_what_the_query_says_is_part_of_the_digest_and_where_it_lies_is_not",
            "unit/test_spec_loading.py::test_environment_references_are_resolved_and_never_shown",
            "system/test_refusals.py::test_more_cells_than_allowed_are_refused",
        ),
        (
            Mutation('f"sha256:{self.source_sql.query.sha256}"', "str(self.source_sql)", "a query changes unnoticed"),
            Mutation('"source": str(self.source),', '"source": self.source.resolved,', "a password in the digest"),
            Mutation("if most is not None and prod(sizes) > most and", "if False and", "a grid that fills the memory"),
        ),
    ),
    Part(
        "dphist_pipeline/spec/periods.py",
        ("unit/test_spec_periods.py",),
        (
            Mutation("if _DAY.fullmatch(key) and period.key != key:", "if False:", "the key of another day"),
            Mutation("min(today - timedelta(days=self.delay_days), last)", "today", "a release goes on after its end"),
            Mutation("<= _instant(now)\n", "< _instant(now)\n", "a period is late by a tick of its schedule"),
            Mutation("period.end.date() + timedelta(days=self.delay_days)", "period.end.date()", "no delay"),
            Mutation("return moment.astimezone(UTC)", "return moment", "an hour that clocks show twice"),
            Mutation("tzinfo=ZoneInfo(self.time_zone)", "tzinfo=UTC", "periods are cut at another midnight"),
            Mutation("day.isoweekday() % 7", "day.isoweekday()", "weeks start on another Sunday"),
            Mutation("month - (month - (self.year_starts - 1)) % months", "month - month % months", "fiscal quarters"),
            Mutation("date(year, 1, 4)) + timedelta", "date(year, 1, 1)) + timedelta", "week 1 is another week"),
            Mutation("if first < self._first_day(date(year + 1, 1, 4)):", "if True:", "a week that a year lacks"),
            Mutation("days=1))\n        return period", "days=8))\n        return period", "a finished week is passed"),
        ),
    ),
    Part(
        "dphist_pipeline/spec/sources.py",
        LISTS,
        (
            Mutation(
                "path if below and not rule.forbidden(path) else None", "path if below else None", "records as codes"
            ),
            Mutation("path if below and not", "path if not", "any file is a code list"),
            Mutation("    path = file.resolve(strict=True)\n", "    path = file.absolute()\n", "a link leads out"),
            Mutation(
                "os.O_RDONLY | os.O_NOFOLLOW |",
                "os.O_RDONLY |",
                "a link that is put in after the judgement",
                "the open file is compared with the path, too",
            ),
            Mutation(" or not _is_at(descriptor, path):", ":", "another file in its place"),
            Mutation("if not stat.S_ISREG(os.fstat(descriptor).st_mode) or", "if", "a pipe is a code list"),
        ),
    ),
    Part(
        "dphist_pipeline/spec/_code_lists.py",
        LISTS,
        (
            Mutation("        if not problem and key in seen:\n", "        if False:\n", "one code has two cells"),
            Mutation("row[coarser]) != row[coarser]:", "row[coarser]) is None:", "a group in two larger groups"),
            Mutation("if len(above) != len(names)]", "if len(above) < len(names)]", "codes at unlike depths"),
            Mutation("if row[parent] and row[parent] not in lines", "if False", "a parent that is no code"),
            Mutation("sorted(mistakes)[:MOST_MISTAKES]]", "sorted(mistakes)]", "mistakes are counted for whoever asks"),
        ),
    ),
    Part(
        "dphist_pipeline/spec/_categorical_axes.py",
        ("unit/test_tidied_categories.py",),
        (
            Mutation(
                "            elif texts.setdefault(tidied(spelling, self.tidy), value) != value:\n",
                "            elif False:\n",
                "one text is counted in two categories",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/spec/_banded_axes.py",
        ("unit/test_banded_axes.py",),
        (
            Mutation(
                "if ends.setdefault(tidied(text, self.tidy), end) != end:",
                "if False:",
                "one text is counted in two bands",
            ),
            Mutation("return sorted({*", "return list({*", "bands in the order of nobody knows what"),
            Mutation("above=self.stop is None,", "above=False,", "the last band is cut off"),
            Mutation("not ends or _fits(ends, upper)", "True", "a missing band is told as part of the one below"),
        ),
    ),
    Part(
        "dphist_pipeline/spec/fields.py",
        MODEL,
        (
            Mutation("return Fraction(digits_text)\n", "return Fraction(number)\n", "0.1 is not one tenth"),
            Mutation("if len(mantissa) > MOST_FLOAT_DIGITS:", "if False:", "digits that a double rounds"),
            Mutation("if not SMALLEST_EPSILON <= number <= LARGEST_EPSILON:", "if number <= 0:", "an epsilon of 1,000"),
            Mutation("if isinstance(value, bool):  # which is", "if False:  # which is", "`yes` is an epsilon of 1"),
        ),
    ),
    Part(
        "dphist_pipeline/spec/_binned_axes.py",
        AXES,
        (
            Mutation("        if edge <= before:\n", "        if edge < before:\n", "a bin without a width"),
            Mutation(
                "tuple((first + number * step) / unit for",
                "tuple(float(start) + number * float(width) for",
                "0.1 + 0.2",
            ),
            Mutation("    elif bins.denominator != 1:\n", "    elif False:\n", "the last bin is shorter"),
        ),
    ),
    Part(
        "dphist_pipeline/spec/sources.py",
        ("unit/test_placeholders.py", "system/test_upstream.py"),
        (
            Mutation("period.end.date() - timedelta(days=1)", "period.end.date()", "a file of the next period"),
            Mutation("(day.replace(day=1) + timedelta(days=31))", "(day + timedelta(days=31))", "a month is left out"),
            Mutation("{year if 'week' in placeholders else day.year:04}", "{day.year:04}", "a week in another year"),
        ),
    ),
    Part(
        "dphist_pipeline/spec/loading.py",
        ("unit/test_spec_loading.py", "attacks/test_templates_that_leak.py"),
        (
            Mutation(
                "if field in addresses and isinstance(value, str):", "if isinstance(value, str):", "a title leaks"
            ),
            Mutation('    if _TEMPLATE.search(_ENV.sub("", value)):\n', "    if False:\n", "Dagster runs what is left"),
        ),
    ),
    Part(
        "dphist_pipeline/spec/_yaml_rules.py",
        ("unit/test_spec_loading.py",),
        (
            Mutation("        if key.value in seen:\n", "        if False:\n", "the last of two epsilons holds"),
            Mutation('if rule[0] != f"{_CORE}timestamp"', "if True", "a day is no text"),
        ),
    ),
    Part(
        "dphist_pipeline/spec/_query_files.py",
        ("system/test_query_files.py",),
        (
            Mutation(
                "lasts: Ends = {value: cell + 1", "lasts: Ends = {value: cell", "a query ends before its last cell"
            ),
            Mutation("cell + axis.below for cell, edge", "cell for cell, edge", "every query is a cell too low"),
            Mutation("elif weight > 0:", "elif weight >= 0:", "a query of no weight takes noise from others"),
        ),
    ),
    Part(
        "dphist_pipeline/spec/sources.py",
        (*MODEL, "unit/test_object_stores.py", "unit/test_databases.py", "unit/test_spec_loading.py"),
        (
            Mutation(
                "if not isinstance(value, FromEnvironment) or not _SERVER.fullmatch(value.written):",
                "if False:",
                "a password in a spec",
            ),
            Mutation('and not {"?", "\\\\"} & {*path}', "", "keys in an address"),
            Mutation(
                "str(Path(glob.escape(str(base))) / pattern)", "str(base / pattern)", "a folder's name is a pattern"
            ),
            Mutation('        elif "," in column:\n', "        elif False:\n", "two units are one in the ledger"),
        ),
    ),
    Part(
        "dphist_pipeline/spec/_quality.py",
        ("unit/test_quality_spec.py",),
        (
            Mutation("quality.rows <= bound:", "quality.rows < bound:", "a table that sees no row beyond the bound"),
            Mutation("return 2 if by_row else 4 + len(quality.by)", "return 4", "too little epsilon for each table"),
        ),
    ),
)
