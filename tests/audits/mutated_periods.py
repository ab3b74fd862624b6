"""Alone: `python tests/audits/mutations.py --only '/(due|waiving|period_|charge_marks|told_)'`.

Mutations of what is said of periods: which are due, what is told of an answer, whether an error came after the charge,
and the sums by which a period is compared with those before it.
"""

from __future__ import annotations

from mutations import Mutation, Part

CHANGES = "answering/test_sudden_changes.py"
COMPARED = "system/test_compared.py"
DUE = "system/test_due.py"
SCHEDULED = "system/test_dagster_periods.py"
SHOWN = "system/test_dagster_shown.py"

PERIODS = (
    Part(
        "dphist_pipeline/answering/told_numbers.py",
        ("answering/test_told_numbers.py",),
        (
            Mutation('if answer["cells"] == 1 or', "if", "the noisy count of a cell, not its estimate"),
            Mutation("if abs(below - above) <= EVEN else None", "", "± beside a number that is not in the middle"),
        ),
    ),
    Part(
        "dphist_pipeline/answering/period_sums.py",
        ("answering/test_period_sums.py", COMPARED),
        (
            Mutation("found.setdefault(axis, one)", "found[axis] = one", "the largest table of a family tells an axis"),
            Mutation('rows["parent"].is_null().to_numpy()', "np.full(len(rows), True)", "a group is summed twice"),
            Mutation("values.size * noise_law.variance(scale)", "noise_law.variance(scale)", "noise of one group"),
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
        "dphist_pipeline/answering/sudden_changes.py",
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
        "dphist_pipeline/releasing/waiving.py",
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
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/charge_marks.py",
        ("system/test_tried_again.py",),
        (
            Mutation("error.charged = False", "error.charged = None", "nobody says that nothing was charged"),
            Mutation("        return None\n", "        return False\n", "a charge that may be there is denied"),
            Mutation("charge.revision == attempt.key.revision", "True", "a refused revision is told as charged"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/period_rules.py",
        (SCHEDULED, DUE),
        (
            Mutation("spec.freshness if spec.freshness is not None", "spec.freshness if spec.freshness", "a week late"),
            Mutation('    if month != "*":\n        return YEAR\n', "", "a yearly release pages every month"),
            Mutation("if path.read_bytes() == written:", "if path.read_bytes():", "the first schedule counts for ever"),
        ),
    ),
    Part(
        "dphist_pipeline/health/due.py",
        (DUE, "system/test_doctor.py"),
        (
            Mutation("    if found.says:\n", "    if False:\n", "doctor finds nothing due"),
            Mutation("if charge.period != EVERYTHING}", "}", "a census is due, nobody knows when"),
            Mutation("            unknown.append(release)\n", "", "nothing is said of a release of an older version"),
            Mutation("now.astimezone(ZoneInfo(cadence.rule.time_zone)).date()", "now.date()", "due a day too early"),
        ),
    ),
    Part(
        "dphist_pipeline/integrations/dagster/checks.py",
        (SHOWN,),
        (Mutation('in ("published", "withdrawn")}', 'in ("published",)}', "a withdrawn week is missing"),),
    ),
)
