"""Alone: `python tests/audits/mutations.py --only '/(integrations|cli|local)/'`; one: `--only 'app.py: an engine'`.

Mutations of what people and programs meet: assets and checks in Dagster, the command line, the local model.
"""

from __future__ import annotations

from mutations import Mutation, Part

PERIODS = "system/test_dagster_periods.py"
SHOWN = "system/test_dagster_shown.py"
RUNS = "system/test_dagster_runs.py"
CLI = "unit/test_cli.py"
ANSWERS = "answering/test_answer_command.py"
CHECKS = f"{SHOWN}::test_checks_warn_with_numbers_of_what_a_person_should_look_at"

AGAIN = "system/test_tried_again.py"
GATE = f"{RUNS}::test_what_fails_the_check_is_not_published"
WAITS = f"{RUNS}::test_a_manual_release_is_drawn_by_dagster_and_published_by_a_person"
REFUSED = f"{RUNS}::test_a_period_that_is_not_over_is_refused_and_spends_nothing"

BUNDLE = "system/test_bundle.py"

FACES = (
    Part(
        "bundle/files/install.sh",
        (BUNDLE,),
        (
            Mutation("$($sums SHA256SUMS 2>&1) ||", "$($sums SHA256SUMS 2>&1 || :) ||", "altered files are installed"),
            Mutation('[ -f "$wanted" ] || refuse', '[ -f "$wanted" ] || : refuse', "wheels of another machine"),
            Mutation("install --no-index --find", "install --find", "pip asks an index where there is no network"),
            Mutation("--require-hashes ", "", "a wheel that nobody packed"),
            Mutation("PIP_CONFIG_FILE=/dev/null ", "", "the machine's pip adds an index of its own"),
            Mutation('|| rm -rf "$target"\' EXIT', "|| :' EXIT", "half a program stays"),
            Mutation("[ $# -ne 1 ] || ! grep", "! grep", "of two pips the first runs"),
        ),
    ),
    Part(
        "bundle/archive.py",
        (BUNDLE,),
        (
            Mutation(
                "0o755 if each.is_dir() or", "entry.mode if each.is_dir() or", "whoever packs decides who may read"
            ),
            Mutation("            entry.mtime = seconds\n", "", "the same commit gives other archives"),
        ),
    ),
    Part(
        "bundle/wheels.py",
        (BUNDLE,),
        (
            Mutation(
                "each.marker.evaluate(markers)", 'each.marker.evaluate({"extra": extra})', "this machine's wheels"
            ),
            Mutation("tags & target.tags", "tags", "a wheel of another machine"),
            Mutation(" --hash=sha256:{hexes}", "", "any wheel of this name is installed"),
            Mutation("if name not in self.pins]:", "if not name]:", "a package without a pin is a traceback"),
        ),
    ),
    Part(
        "bundle/targets.py",
        (BUNDLE,),
        (Mutation("if named not in known:", "if not named:", "an archive for machines that nobody knows"),),
    ),
    Part(
        "dphist_pipeline/integrations/dagster/_periods.py",
        (PERIODS, "system/test_dagster.py"),
        (
            Mutation(
                "end_offset=-ceil(spec.release_delay_days", "end_offset=0 * ceil(spec.release_delay_days", "early"
            ),
            Mutation("end=spec.period_rule.end,", "end=None,", "Dagster offers weeks after the last one"),
            Mutation("timezone=str(spec.time_zone),\n        end", 'timezone="UTC",\n        end', "another midnight"),
            Mutation(
                "execution_timezone=str(spec.time_zone)", 'execution_timezone="UTC"', "a schedule at another hour"
            ),
            Mutation(
                "ask.missing() & ~ask.any_deps_missing()", "ask.missing()", "a week without its last day upstream"
            ),
            Mutation("2 ** (len(failures) - 1)", "2", "a period that never comes is asked for for ever"),
            Mutation(
                "default_status=dg.DefaultScheduleStatus.STOPPED",
                "default_status=dg.DefaultScheduleStatus.RUNNING",
                "a schedule spends before anybody started it",
            ),
            Mutation(
                "(first + months_passed) % 12 + 1 for",
                "months_passed % 12 + 1 for",
                "fiscal quarters are other partitions",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/integrations/dagster/_checks.py",
        (SHOWN,),
        (Mutation("if cells.tell or not cells.cells:", "if True:", "nothing but noise passes"),),
    ),
    Part(
        "dphist_pipeline/integrations/dagster/_checks.py",
        (CHECKS, SHOWN),
        (
            Mutation("runway.releases >= FEW_RELEASES", "runway.releases >= 0", "an account ends unseen"),
            Mutation(
                "fell = total.ci_upper * LARGEST_CHANGE < last.ci_lower", "fell = False", "half the records are gone"
            ),
            Mutation("max(last.ci_upper, 0) * LARGEST_CHANGE", "max(last.ci_upper, 0) * 99", "records come twice"),
            Mutation("        not missing, {", "        True, {", "a week that nobody released"),
            Mutation(
                "dg.AssetCheckSeverity = dg.AssetCheckSeverity.WARN",
                "dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR",
                "a warning fails a run",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/integrations/dagster/_outcomes.py",
        (GATE, WAITS, REFUSED, f"{AGAIN}::test_a_refusal_is_final_though_a_project_tries_every_step_again"),
        (
            Mutation(
                'many + "\\n".join(problems), allow_retries=False)',
                'many + "\\n".join(problems))',
                "a refusal is retried",
            ),
            Mutation(
                "CheckResult(all(conditions.values()), conditions,",
                "CheckResult(True, conditions,",
                "the gate passes whatever was found",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/integrations/dagster/_release.py",
        (GATE, WAITS, f"{SHOWN}::test_a_text_column_as_period_warns_where_its_format_is_not_said"),
        (
            Mutation("spec.deps, warning)", 'spec.deps, "")', "dates that nobody can read pass without a word"),
            Mutation(
                "        if not all(conditions.values()):\n", "        if False:\n", "published though the gate failed"
            ),
            Mutation("publishes=not by_hand)", "publishes=True)", "a step publishes what waits for a person"),
        ),
    ),
    Part(
        "dphist_pipeline/integrations/dagster/_upstream.py",
        ("system/test_dagster_upstream.py",),
        (
            Mutation("event.timestamp >= end.timestamp())", "True)", "upstream from before the end of the period"),
            Mutation("if begins > start.timestamp() else []", "if False else []", "partitions that begin too late"),
        ),
    ),
    Part(
        "dphist_pipeline/cli/app.py",
        (CLI,),
        (
            Mutation(
                "        kind = type(error).__name__\n", "        kind = str(error)\n", "an engine's message, values in"
            ),
            Mutation("escape(_without_control(message))", "escape(message)", "a file's name steers the terminal"),
            Mutation(
                "TRY_AGAIN if error.try_again else 1,", "TRY_AGAIN if error.try_again else 0,", "a refusal is a success"
            ),
            Mutation(
                'return _usage(error), getattr(error, "exit_code", 2)',
                "return _usage(error), 1",
                "wrong usage and a refusal alike",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/cli/release/release.py",
        (CLI, "system/test_replay.py"),
        (
            Mutation("if revise != bool(reason.strip()):", "if False:", "a reason alone is charged as a revision"),
            Mutation('"replayed": publication.replayed,', '"replayed": False,', "a script takes a replay for a charge"),
        ),
    ),
    Part(
        "dphist_pipeline/cli/release/decide.py",
        ("system/test_approvals.py", "system/test_rejections.py"),
        (
            Mutation("approved_by, period, revision=revision,", "approved_by, period,", "another revision is approved"),
            Mutation("release, period, reason, revision)", "release, period, reason)", "another revision is rejected"),
            Mutation('"awaits_approval": True', '"awaits_approval": False', "a script takes what waits for published"),
        ),
    ),
    Part(
        "dphist_pipeline/cli/ask/answer.py",
        (ANSWERS,),
        (
            Mutation("elif estimate != unbiased:", "elif False:", "an interval of another number"),
            Mutation('if audit["max_rows_per_unit"] == 1 else "values', 'if True else "values', "values are people"),
            Mutation('    elif count.basis != "noise_only":\n', "    else:\n", "an interval where there is none"),
        ),
    ),
    Part(
        "dphist_pipeline/cli/ask/answer.py",
        ("publishing/test_shown_below.py",),
        (
            Mutation(
                "if number.limit is not None and number.hides:", "if not vars(number):", "the end tells a hidden figure"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/cli/ask/_answer_rows.py",
        ("publishing/test_shown_below.py",),
        (Mutation("are_counts and asked.question in FIGURES", "False", "a table tells figures below the limit"),),
    ),
    Part(
        "dphist_pipeline/cli/ask/_answer_rows.py",
        (ANSWERS,),
        (
            Mutation("        if len(questions) > 1:\n", "        if False:\n", "one of two questions is answered"),
            Mutation(
                "ask(box, box_where(condition))",
                "ask(box_where(condition), box)",
                "a difference with the wrong sign",
            ),
            Mutation("asked.mean, asked.low, asked.high, box", "asked.mean, asked.high, asked.low, box", "ends"),
            Mutation('MARKS = {"fair": " ~", "poor": " !"}', 'MARKS = {"fair": " ~"}', "a poor estimate looks sure"),
            Mutation("enumerate(distinct, notes + 1)", "enumerate(distinct, 1)", "the number of another sentence"),
        ),
    ),
    Part(
        "dphist_pipeline/cli/prepare/check.py",
        (CLI, "unit/test_explaining.py", "system/test_refusals.py"),
        (
            Mutation("    beside.refuse_taken_view()\n", "", "a name that a release will be refused for is valid"),
            Mutation('"sensitivity": checked.sensitivity,', '"sensitivity": checked.max_rows_per_unit,', "half of it"),
        ),
    ),
    Part(
        "dphist_pipeline/local/contributor.py",
        ("local/test_contributor.py",),
        (
            Mutation("if spent + question.epsilon > limit:", "if spent > limit:", "more than a contributor allows"),
            Mutation(
                'earlier_answer = record["answered"].get(question.digest)',
                "earlier_answer = None",
                "fresh coins at every asking",
            ),
            Mutation("                self._write(record)\n", "", "a report is given away before its record"),
        ),
    ),
    Part(
        "dphist_pipeline/local/encoding.py",
        ("local/test_encoding.py",),
        (
            Mutation(
                'if part.encoding == "symmetric" else part.epsilon)', "if True else part.epsilon)", "half of epsilon"
            ),
            Mutation(
                "return Chance(1, part.epsilon / 2 if", "return Chance(1, part.epsilon if", "twice epsilon is spent"
            ),
            Mutation("draws + (draws >= numbers[lies])", "draws", "a lie that is the truth"),
            Mutation("places[values == edges[-1]] = part.intervals - 1", "pass", "the last edge is in no interval"),
        ),
    ),
    Part(
        "dphist_pipeline/local/_coins.py",
        ("local/test_coins.py",),
        (
            Mutation(
                "tossed: NDArray[np.bool_] = words < next_digits",
                "tossed: NDArray[np.bool_] = words <= next_digits",
                "a coin",
                equivalent="where the digits are equal, the coin is tossed on with the next ones, whatever this says",
            ),
            Mutation("fair = (1 << 64) - (1 << 64) % bound", "fair = 1 << 64", "some numbers are likelier"),
        ),
    ),
    Part(
        "dphist_pipeline/local/tally.py",
        ("local/test_tally.py",),
        (
            Mutation(
                "        is_wrong |= _above(planes, question.values)\n",
                "        pass\n",
                "a sum of thousands counts",
            ),
            Mutation("sound &= _are_sound(", "sound = _are_sound(", "a report that is malformed in one part counts"),
        ),
    ),
    Part(
        "dphist_pipeline/local/rounds.py",
        ("local/test_rounds.py", "system/test_dagster_local_runs.py"),
        (
            Mutation("    if place.read_bytes() != content:\n", "    if False:\n", "a round asks another question"),
            Mutation(
                '            if facts["question"] == question.digest:\n', "            if True:\n", "another's tally"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/spec/collection.py",
        ("local/test_collection.py",),
        (
            Mutation(
                "start + math.ceil((stop - start)", "start + math.floor((stop - start)", "the range ends too early"
            ),
            Mutation("widths[-1] < widths[0]", "widths[-1] > widths[0]", "a shorter interval is not told"),
            Mutation("if exact > stop - start > 0:", "if False:", "an interval that is wider than the range"),
        ),
    ),
    Part(
        "dphist_pipeline/local/_late_consumers.py",
        ("local/test_late_consumers.py",),
        (
            Mutation(
                "for edge in consumer.edges} - set(boundaries))",
                "for edge in consumer.edges})",
                "old boundaries are blamed",
            ),
            Mutation("if declared.digest[:NAMED] in digests:", "if True:", "a consumer is blamed who changed nothing"),
        ),
    ),
    Part(
        "dphist_pipeline/applications/blocking.py",
        ("applications/test_released_blocks.py",),
        (
            Mutation("[{cell} + 1]", "[{cell}]", "records in the block of the cell before"),
            Mutation("return None if column.null_count else", "return", "a release without groups is one block"),
            Mutation("    if one.counts.size > MOST_CELLS:\n", "    if False:\n", "a query of millions of words"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/releases.py",
        ("applications/test_released_blocks.py",),
        (Mutation("if released_groups == (by is not None):", "if False:", "axes that are given and not used"),),
    ),
    Part(
        "dphist_pipeline/planning/interview.py",
        ("planning/test_interview.py",),
        (
            Mutation("            if not problem:\n", "            if answer:\n", "what check refuses is taken"),
            Mutation("sensitivity / (epsilon *", "1 / (epsilon *", "a cell is said to be nearer than it is"),
        ),
    ),
    Part(
        "dphist_pipeline/cli/prepare/new.py",
        ("planning/test_interview.py",),
        (
            Mutation("not no_input and", "", "who wants no questions is asked"),
            Mutation("        refuse_taken(file)\n", "", "a dozen answers for a file that cannot be written"),
        ),
    ),
    Part(
        "dphist_pipeline/planning/plain_texts.py",
        ("planning/test_plain_texts.py",),
        (
            Mutation("return 2 * max(reach, 1) - 1", "return max(reach, 1)", "half of the count that can be told"),
            Mutation('(2 if spec.neighbours == "add_remove" else 1)', "1", "half of what is told of known people"),
        ),
    ),
    Part(
        "dphist_pipeline/planning/serving.py",
        ("planning/test_serving.py",),
        (
            Mutation(
                'if serves == "prefixes" else ()',
                'if serves == "ranges" else ()',
                "sums for other questions than were asked",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/applications/synthetic_report.py",
        ("system/test_families.py", "applications/test_group_rates.py"),
        (
            Mutation("max(scale, 1.0) * _missed(", "_missed(", "a family is blamed for what a sample lacks"),
            Mutation("share * (1 - share) if sampled else 0.0", "0.0", "rates are blamed for the drawing of few rows"),
        ),
    ),
    Part(
        "dphist_pipeline/applications/_group_rates.py",
        ("applications/test_group_rates.py",),
        (
            Mutation("shared.coefficient * inside[box]", "shared.coefficient", "a cell is blind to its box"),
            Mutation("np.where(square > 0, other,", "np.where(square > -1e9, other,", "rates of groups near 0"),
        ),
    ),
)
