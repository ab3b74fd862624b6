"""Alone: `python tests/audits/mutations.py --only '/reading/'`; one: `--only '_rows_alone.py: a million rows'`.

Mutations of how records are read, and of which engine may read them.
"""

from __future__ import annotations

from mutations import Mutation, Part

ALONE = "unit/test_rows_alone.py"
ENGINES = "system/test_engine_versions.py"

READING = (
    Part(
        "dphist_pipeline/confidential/reading/ingest.py",
        (
            "unit/test_ingest.py",
            "unit/test_source_formats.py",
            "unit/test_source.py",
            "unit/test_row_marks.py",
            "attacks/test_sources_that_were_not_allowed.py",
            "unit/test_local_days.py",
            "unit/test_zone_data.py",
        ),
        (
            Mutation("moment.replace(tzinfo=None).isoformat", "moment.astimezone().isoformat", "two zone data decide"),
            Mutation(
                "if source.types[column] in TEXT and", "if False and", "text dates of no declared form are charged"
            ),
            Mutation(">= CAST($period_start", "> CAST($period_start", "a period's first moment is lost"),
            Mutation("< CAST($period_end", "<= CAST($period_end", "the next period's first moment counts twice"),
            Mutation('"SET lock_configuration = true"', '"SELECT 1"', "a query changes the settings"),
            Mutation("if unit and plan.rows_seen is None", "if False", "rows of no cell are staged"),
            Mutation("and kind != decided:", "and False:", "a unit of another kind than was decided on"),
            Mutation("path.resolve().is_relative_to(folder)", "True", "a link leads out of the folder"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/reading/column_sql.py",
        ("unit/test_declared_columns.py",),
        (
            Mutation(
                "taken = {name.lower() for name in names}", "taken = {*names}", "a unit is shadowed in other letters"
            ),
            Mutation("    refuse_shadowing(derived, source.types)\n", "", "a column of a later file is shadowed"),
            Mutation(
                "for column in source.unit if source.is_csv and derived else ():",
                "for column in ():",
                "derived names are compared with a line that may be a record",
            ),
            Mutation("{ends['from']} <= {value}", "{ends['from']} < {value}", "`from` is left out"),
        ),
    ),
    Part(
        "dphist_pipeline/spec/declared_columns.py",
        ("unit/test_declared_columns.py",),
        (Mutation("if one.column in taken", "if False", "a derived column is the unit"),),
    ),
    Part(
        "dphist_pipeline/base/declared_numbers.py",
        ("unit/test_declared_numbers.py",),
        (
            Mutation(
                "(_shortest(nearest) > declared) == up", "True", "a float beside an edge is in the bin beside its own"
            ),
            Mutation(
                "math.floor(exact) + 1", "math.ceil(exact)", "a length of time at a closed end is in the next bin"
            ),
            Mutation("if missed:", "if False:", "a category that never matches is counted as 0"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/reading/source.py",
        (
            "unit/test_ingest.py",
            "unit/test_source.py",
            "unit/test_checked_columns.py",
            "attacks/test_sources_that_were_not_allowed.py",
        ),
        (
            Mutation("        **NOTHING_INSTALLED,\n", "", "the engine installs what a query names"),
            Mutation("if near and self.names_unit:", "if near:", "a record in place of a header is probed for words"),
            Mutation("if column in self.lacking:", "if False:", "a column that a file lacks is counted as null"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/reading/_units.py",
        ("unit/test_source_formats.py", "unit/test_ingest.py", "attacks/test_values_of_any_size.py"),
        (
            Mutation(
                "WHEN contains({text}, {literal(sign)}) THEN",
                "WHEN false THEN",
                "people with broken names are one person",
            ),
            Mutation("WHEN {name} = 0 THEN '0.0' ", "", "0.0 and -0.0 are two people"),
            Mutation("WHEN isnan({name}) THEN NULL ", "", "all people without a number are one person"),
            Mutation('" AND ".join(conditions)', '" OR ".join(conditions)', "half a name is a person"),
            Mutation(
                "> {lengths.LONGEST_TEXT} THEN NULL",
                "> {lengths.LONGEST_TEXT} THEN ''",
                "long names are one",
                "the digest of a long name is taken before the text beside it",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/base/unit_forms.py",
        ("unit/test_source_formats.py", "unit/test_unit_forms.py", "unit/test_ingest.py"),
        (
            Mutation(
                "nullif(trim({column}, {_TRIM_BLANKS}), '')",
                "trim({column}, {_TRIM_BLANKS})",
                "blank names are one person",
            ),
            Mutation("WHEN contains({column}, chr(0)) THEN NULL", "WHEN false THEN NULL", "names are cut at a NUL"),
            Mutation("frequent = {letter: other.pop(letter)", "frequent = {letter: letter", "straße is no STRASSE"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/reading/_source_files.py",
        ("unit/test_source_formats.py", "unit/test_source.py", "unit/test_ingest.py", "unit/test_unit_forms.py"),
        (
            Mutation("if _repeats(", "if False and _repeats(", "of two columns of one name the first is the unit"),
            Mutation("        _check_whole(path)\n", "", "an archive that was cut off is read in part"),
            Mutation("ignore_errors = true", "ignore_errors = false", "a row makes a run fail"),
            Mutation(
                "{str(bool(folders)).lower()}, hive_types_autocast = false",
                "{str(bool(folders)).lower()}, hive_types_autocast = true",
                "folders' types depend on others",
            ),
            Mutation(
                "all(_is_plain(path, cr_ends[path]) for path in files)",
                "True",
                "a byte of another encoding costs a line",
            ),
            Mutation("replaced=csv_text.LOST", 'replaced=""', "names that differ in broken bytes are one person"),
            Mutation(
                'if part.find("=") > 0), "rows.csv"',
                'if not part.find("=") > 0), "rows.csv"',
                "copies lose the columns of their folders",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/reading/_csv_lines.py",
        ("unit/test_csv_lines.py",),
        (
            Mutation(
                "WHEN len({FIELDS}) = {len(names)} THEN", "WHEN len({FIELDS}) > 0 THEN", "surplus fields are cut off"
            ),
            Mutation("CASE WHEN trim({text}, {nothing}) = ''", "CASE WHEN {text} = ''", "a line of a text is somebody"),
            Mutation("place % 2 = 0", "place % 2 = 2", "a delimiter in quotes moves columns"),
        ),
    ),
    Part(
        "dphist_pipeline/base/csv_text.py",
        ("unit/test_csv_lines.py", "unit/test_source_formats.py", "system/test_sources_released.py"),
        (
            Mutation('MARK not in text and text.count("\\r") == both', "True", "a CR ends somebody's line"),
            Mutation(
                "lowered.index(name) + 1) < place", "lowered.index(name) + 1) < 0", "columns that DuckDB mixes up"
            ),
            Mutation('"ignore") or chr(byte)', '"replace") or chr(byte)', "two bytes of windows-1252 are one sign"),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/reading/_databases.py",
        ("unit/test_databases.py",),
        (
            Mutation("AS {OFFICE} (READ_ONLY)", "AS {OFFICE}", "the office's database is open for writing"),
            Mutation(
                'if "GENERATED ALWAYS" in str(tables[name]).upper():', "if False:", "a column that may fail on a row"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/confidential/reading/_rows_alone.py",
        (ALONE, "unit/test_extreme_values.py"),
        (
            Mutation("failed += rows is None", "failed += 0", "rows that fail alone are no rows"),
            Mutation("        except OF_THE_MACHINE:\n            raise\n", "", "rows vanish where memory ends"),
            Mutation("self.connection = self._fresh()\n            return None", "return None", "a broken connection"),
            Mutation("rows is not None or stop - start == 1", "rows is not None", "a row that fails alone, for ever"),
            Mutation("waiting += reversed(pieces)", "waiting += pieces[:1]", "neighbours of a failing row are lost"),
            Mutation("min(start + MANY, total)", "start + MANY - 1", "a row of each large batch is lost"),
            Mutation("few = stop - start <= FEW", "few = True", "each row of a batch alone"),
            Mutation("few = stop - start <= FEW", "few = False", "more than two statements for each row that fails"),
            Mutation("CAST(sum({name}) AS BIGINT)", "CAST(max({name}) AS BIGINT)", "sums"),
            Mutation("        part.unlink(missing_ok=True)\n", "", "exact rows stay beside the staged ones"),
            Mutation("        parts.unlink(missing_ok=True)\n", "", "all exact rows stay"),
            Mutation("if column in needed else", "if True else", "a damaged column that nobody reads"),
            Mutation('f"{copy} AS {name}"', 'f"{copy}"', "columns lose their names"),
        ),
    ),
    Part(
        "dphist_pipeline/base/engine_versions.py",
        (ENGINES, "architecture/test_architecture.py"),
        (
            Mutation("if minor != SUITE[name])", "if not minor)", "any engine reads"),
            Mutation('HELD = ("duckdb", "polars")', 'HELD = ("duckdb",)', "any Polars decides which rows are kept"),
            Mutation('r"\\d+\\.\\d+"', 'r"\\d+"', "a minor version is as good as another"),
        ),
    ),
    Part(
        "dphist_pipeline/health/_versions.py",
        (ENGINES,),
        (
            Mutation("permissions.version(version) is None", "permissions.version(version)", "what was allowed warns"),
            Mutation("!= SUITE[name]]", "== SUITE[name]]", "PyArrow of another version passes in silence"),
            Mutation(
                "subject.ledger is None or", "subject.ledger is not None and", "a place without a ledger is not told"
            ),
        ),
    ),
)
