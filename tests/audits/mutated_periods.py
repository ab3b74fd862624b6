"""Alone: `python tests/audits/mutations.py --only '/(due|waiv|period_|charge_m|told_|doubt|latest_|axis_l|supers)'`.

Mutations of what is said of periods: which are due, what is told of an answer, whether an error came after the charge,
and the sums by which a period is compared with those before it.
"""

from __future__ import annotations

from mutations import Mutation, Part

CHANGES = "answering/test_sudden_changes.py"
COMPARED = "system/test_compared.py"
DUE = "system/test_due.py"
LATEST = "publishing/test_latest_cells.py"
SCHEDULED = "system/test_dagster_periods.py"
SHOWN = "system/test_dagster_shown.py"

PERIODS = (
    Part(
        "dphist_pipeline/publishing/told_numbers.py",
        ("answering/test_told_numbers.py",),
        (
            Mutation('= answer["cells"] != 1 and', "=", "the noisy count of a cell, not its estimate"),
            Mutation("if abs(below - above) <= EVEN else None", "", "± beside a number that is not in the middle"),
            Mutation("half = max(below, above)", "half = min(below, above)", "± that is narrower than its interval"),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/told_numbers.py",
        ("publishing/test_shown_below.py",),
        (Mutation("(headline < limit or unbiased < limit)", "headline < limit", "an interval around a hidden figure"),),
    ),
    Part(
        "dphist_pipeline/answering/_period_sums.py",
        ("answering/test_period_sums.py", COMPARED),
        (
            Mutation("found.setdefault(axis, one)", "found[axis] = one", "the largest table of a family tells an axis"),
            Mutation('rows["parent"].is_null().to_numpy()', "np.full(len(rows), True)", "a group is summed twice"),
            Mutation("values.size * noise_law(scale).variance", "noise_law(scale).variance", "noise of one group"),
            Mutation("one / shape[0] * shape,", "one + 0 * shape,", "each value has the noise of the first one"),
        ),
    ),
    Part(
        "dphist_pipeline/answering/past_periods.py",
        (COMPARED,),
        (
            Mutation("start - WEEKS_OF_YEAR if", "start - 2 * WEEKS_OF_YEAR if", "the feast of another year"),
            Mutation("length * NEAR_WEEKS if is_week", "length * 0 if is_week", "a feast that falls a week earlier"),
        ),
    ),
    Part(
        "dphist_pipeline/answering/_sudden_changes.py",
        (CHANGES,),
        (
            Mutation(
                " & _beyond(new.middle, old.middle, rule.factor, falls)", "", "every change that noise does not hide"
            ),
            Mutation(
                "max(1.0, values * periods_a_year)", "max(1.0, periods_a_year)", "a hundred values ring by chance"
            ),
            Mutation("for period in periods[:LAST] if", "for period in periods if", "an old period is never forgotten"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/store_decisions.py",
        (DUE, SCHEDULED),
        (
            Mutation("    if period in charged:\n", "    if False:\n", "what is charged is waived"),
            Mutation("    if not charged:\n", "    if False:\n", "a mistyped release is waived"),
            Mutation("    if EVERYTHING in charged:\n", "    if False:\n", "a census is waived"),
            Mutation("        cadence.rule.named(period)\n", "        pass\n", "a day that begins no period is waived"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/due.py",
        (DUE, SCHEDULED),
        (
            Mutation(" + timedelta(days=rule.delay_days)", "", "due since before it could be released"),
            Mutation(
                "if latest >= first and latest not in waived_periods(ledger, spec.release) else",
                "if latest >= first else",
                "a waived week is the first that is charged",
                "no week of a release that was never charged can be waived",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/release.py",
        ("system/test_tried_again.py",),
        (
            Mutation("error.charged = False", "error.charged = None", "nobody says that nothing was charged"),
            Mutation(
                "        return None\n    return any(",
                "        return False\n    return any(",
                "a charge that may be there is denied",
            ),
            Mutation("charge.revision == attempt.key.revision", "True", "a refused revision is told as charged"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/due.py",
        (SCHEDULED, DUE),
        (
            Mutation("spec.freshness if spec.freshness is not None", "spec.freshness if spec.freshness", "a week late"),
            Mutation('    if month != "*":\n        return YEAR\n', "", "a yearly release pages every month"),
            Mutation("if path.read_bytes() == content:", "if path.read_bytes():", "the first schedule counts for ever"),
        ),
    ),
    Part(
        "dphist_pipeline/health/due.py",
        (DUE, "system/test_doctor.py"),
        (
            Mutation("    if late.says:\n", "    if False:\n", "doctor finds nothing due"),
            Mutation("if charge.period != EVERYTHING}", "}", "a census is due, nobody knows when"),
            Mutation("            unknown.append(release)\n", "", "nothing is said of a release of an older version"),
            Mutation("now.astimezone(ZoneInfo(cadence.rule.time_zone)).date()", "now.date()", "due a day too early"),
        ),
    ),
    Part(
        "dphist_pipeline/integrations/dagster/_checks.py",
        (SHOWN,),
        (Mutation('in ("published", "withdrawn")}', 'in ("published",)}', "a withdrawn week is missing"),),
    ),
    Part(
        "dphist_pipeline/releasing/store.py",
        ("system/test_plausible.py",),
        (
            Mutation(
                '            write_durably(place, b"")\n',
                "            pass\n",
                "what waits for a person is due, for a machine",
            ),
            Mutation('"waiting" / charge.hash\n', '"waiting"\n', "one that waits has all others wait"),
        ),
    ),
    Part(
        "dphist_pipeline/health/_publications.py",
        (COMPARED, "system/test_plausible.py", "system/test_doctor.py"),
        (
            Mutation('    if "approved" in audit:\n', "    if False:\n", "what a person approved is doubted for ever"),
            Mutation(
                'if audit.get("total_holds_zero") else ""', 'if False else ""', "doctor says nothing of an empty week"
            ),
            Mutation(
                'return empty or str((audit.get("compared") or {}).get("says") or "")', "return empty", "and a code"
            ),
            Mutation('["periods"][-LATEST:]', '["periods"][:1]', "the first period is looked at, not the last ones"),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/_latest_cells.py",
        (LATEST,),
        (
            Mutation(
                "_marked(target / PARQUET) == mark", "_marked(target / PARQUET)", "a revision leaves the old cells"
            ),
            Mutation(".slice(0, 0).replace", ".replace", "cells of a withdrawn week stay"),
            Mutation(
                "    if hashlib.sha256(content).hexdigest() != part.sha256:\n", "    if False:\n", "altered cells"
            ),
            Mutation(
                'quoted = pc.replace_substring_regex(texts, formula, r"\'\\1")',
                "quoted = texts",
                "a label is a formula of a spreadsheet",
            ),
            Mutation("<= MOST_ROWS:", "<= MOST_ROWS * 99:", "a long history is written whole each week"),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/axis_labels.py",
        ("answering/test_axis_labels.py", LATEST),
        (
            Mutation("return OTHER_BESIDE_ONE if OTHER in texts else OTHER", "return OTHER", "two values are `other`"),
            Mutation("    return len(texts) == len(axis.values)\n", "    return True\n", "two counties have one label"),
            Mutation("if name not in others}", "}", "a column of another axis is lost"),
            Mutation(
                "pa.array(along[place], mask=np.isnan(along[place]))", "pa.array(along[place])", "other ends at NaN"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/_published_pages.py",
        ("publishing/test_superseded_cards.py",),
        (
            Mutation(
                "    return _unmarked_superseded(card, folder).replace(",
                "    return card.replace(",
                "a card is marked twice",
            ),
            Mutation("_ANY_REASON if reason is None else", "_ANY_REASON if True else", "other words pass as a reason"),
            Mutation(
                "    if _TOP + _WITHDRAWN in card:\n", "    if False:\n", "a withdrawn card leads to another number"
            ),
            Mutation(" if older else _unmarked_superseded(text, folder)", " if True else text", "the latest is marked"),
            Mutation("            newest = latest.get(", "            newest = 0 * latest.get(", "no card is marked"),
        ),
    ),
)
