"""Alone: `python tests/audits/mutations.py --only /releasing/`; one: `--only 'release.py: drawn again'`.

Mutations of releasing: charge once, draw once, join, wait, withdraw, reject, revise.
"""

from __future__ import annotations

from mutations import Mutation, Part

REPLAYS = "system/test_replay.py"
REJECTIONS = "system/test_rejections.py"
APPROVALS = "system/test_approvals.py"
HOSTS = "system/test_hosts.py"
RESTORED = "system/test_restored_backups.py"
COPIES = "attacks/test_copies_that_draw_again.py"
ATTACKED = "attacks/test_found_by_attackers.py"
REFUSED, REFUSALS = "system/test_refused_accounts.py", "system/test_refusals.py"
BUCKETS = "attacks/test_buckets_of_others.py"
RUNWAY = "planning/test_account_runway.py"

RELEASING = (
    Part(
        "dphist_pipeline/releasing/release.py",
        (REPLAYS,),
        (
            Mutation(
                "published, _refusing(answers_lost(attempt.key))",
                "published, once",
                "drawn again once it was published",
            ),
            Mutation(
                "record=lambda: attempt.ledger.record_published(paid.charge, values_digest(paid.estimate)),",
                "record=lambda: None,",
                "the ledger does not know what is out",
            ),
            Mutation(
                "if charged.published is not None and charged.published != values_digest(estimate):",
                "if False:",
                "other values than published",
            ),
            Mutation(
                "revision=charge.revision if charge else len(charges) + 1,",
                "revision=charge.revision if charge else 1,",
                "a revision in the place of the first",
            ),
            Mutation("if reason and not charges:", "if False:", "a revision of nothing is charged"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/release.py",
        (
            COPIES,
            f"{ATTACKED}::test_what_was_disallowed_since_the_charge_is_not_read",
            f"{ATTACKED}::test_a_decision_is_taken_back_between_counting_and_drawing",
            f"{ATTACKED}::test_a_decision_is_not_undone_by_putting_the_ledger_back_to_before_it",
        ),
        (
            Mutation("if entry.number < adopted:", "if False:", "drawn again after an adoption"),
            Mutation(
                "    if charged.published is None:\n        _vouch(",
                "    if False:\n        _vouch(",
                "no witness knows",
            ),
            Mutation(
                "        store.refuse_cut(ledger, witness)\n    return charge",
                "    return charge",
                "a cut ledger charges",
            ),
            Mutation(
                "decisions = refuse_overtaken(attempt, Race.DISALLOWED_BEFORE_READING)",
                "decisions = tuple(of for of in attempt.ledger.books().permissions.ever.values() if of.reading)",
                "read though the source was disallowed since the charge",
            ),
            Mutation(
                "        refuse_overtaken(attempt, Race.DISALLOWED_WHILE_COUNTING)\n        return exact",
                "        return exact",
                "drawn though the source was disallowed during the count",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/release.py",
        ("system/test_upstream.py", REFUSED, REFUSALS),
        (
            Mutation("        ledger.check(request)\n", "        pass\n", "refused after the records are read"),
            Mutation("spec.only_dagster_knows and not", "False and not", "nobody looked upstream"),
            Mutation("    spec.refuse_unfinished(period, now)\n", "", "a period is released before it is over"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/release.py",
        (
            "system/test_resume.py",
            "attacks/test_exact_files_that_stay.py::test_no_exact_count_lies_on_the_disk_while_a_door_draws",
            "system/test_races.py::test_a_revision_overtaken_by_another_spends_nothing_until_asked_again",
        ),
        (
            Mutation("once: Load = cache(load)", "once: Load = load", "a period is read twice for one charge"),
            Mutation("    cube.unlink()\n", "", "exact counts lie on the disk while doors draw"),
            Mutation("if entry.reason != attempt.request.reason:", "if False:", "another's revision is given back"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/release.py",
        (REJECTIONS, APPROVALS, HOSTS),
        (
            Mutation(
                '[charge for charge in meant if "rejected" not in ledger.notes(charge)]',
                "meant",
                "a rejected revision hides what was published",
            ),
            Mutation(
                "if revision in (None, charge.revision)\n    ]",
                "if True\n    ]",
                "another revision is approved than named",
            ),
            Mutation(
                "    refuse_overtaken(attempt, Race.REJECTED_WHILE_DRAWING, charged.charge)\n    store.forget",
                "    store.forget",
                "what was rejected while a door drew goes on",
            ),
            Mutation(
                "        refuse_overtaken(attempt, Race.REJECTED_BEFORE)\n",
                "        pass\n",
                "what a killed rejection left is published",
            ),
            Mutation(
                "        refuse_overtaken(attempt, Race.REJECTED_IN_A_DOOR, charged.charge)\n",
                "",
                "a rejection under a door is told as a missing file",
            ),
            Mutation(
                "    refuse_overtaken(attempt, Race.WITHDRAWN_BEFORE)\n",
                "",
                "what was taken back is given as published",
            ),
            Mutation(
                "    refuse_overtaken(attempt, Race.WITHDRAWN_WHILE_PUBLISHING, paid.charge)\n",
                "",
                "a call ends well whose files were taken back",
            ),
            Mutation(
                "        refuse_overtaken(attempt, Race.CHARGED_BY_ANOTHER_SINCE, entry)\n",
                "",
                "two hosts that charge at once both draw",
            ),
            Mutation(
                "        refuse_overtaken(attempt, Race.CHARGED_BY_ANOTHER_BEFORE, published=published is not None)\n",
                "        pass\n",
                "a host draws for another's charge",
            ),
            Mutation("    finish_withdrawals(store, ledger)\n", "", "a killed withdrawal answers for ever"),
            Mutation(
                "    finish_withdrawals(attempt.store, attempt.ledger)\n",
                "",
                "what was withdrawn while it was published answers",
            ),
            Mutation(
                "if published is not None or entry.number > adopted:",
                "if False:",
                "two hosts draw for one charge",
            ),
            Mutation("folder=store.own_folder(), days=days", "days=days", "a charge belongs to no host"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/_approvals.py",
        (REJECTIONS, APPROVALS),
        (
            Mutation(
                "if is_held and ledger.published_digest(charge) is None:",
                "if False:",
                "published before anybody approved",
            ),
            Mutation(
                'return self.publish == "manual" or doubted or (charge is not None and charge.held)',
                'return self.publish == "manual" or doubted',
                "an edit of the spec publishes what waits",
            ),
            Mutation(
                "if len(waiting) > 1 or any(charge.revision != latest for charge in waiting):",
                "if False:",
                "an approval of something else than was meant",
            ),
            Mutation("    if len(waiting) > 1:\n", "    if False:\n", "one of several is rejected unnamed"),
            Mutation(
                "for charge in standing or charges[-1:]:", "for charge in charges[-1:]:", "earlier revisions stand"
            ),
            Mutation(
                "if folder.exists() and not PublishedFolder(folder).is_marked_withdrawn():",
                "if False:",
                "an audit without the withdrawal",
            ),
            Mutation(
                "        if not witness.exists():\n", "        if False:\n", "an older ledger draws a rejected one"
            ),
            Mutation(
                "        if answers.exists():\n", "        if False:\n", "what was drawn for a rejected one stays"
            ),
            Mutation("        ledger.record_published(charge, recorded)\n", "", "a ledger that forgot what is out"),
            Mutation("if not charges and any(charge.period == period", "if any(False", "what waits is withdrawn"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/release.py",
        (APPROVALS,),
        (
            Mutation('if published and "approved" not in', 'if False and "approved" not in', "approved afterwards"),
            Mutation("    PublicFolder(store).refresh(Key(name, period, 1))\n", "", "SQL answers what was withdrawn"),
            Mutation(
                "if attempt.charge is None or not is_drawn:", "if False:", "an approval before anything was drawn"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/store.py",
        (HOSTS,),
        (Mutation("ledger.id, joined=True,", "ledger.id, joined=False,", "a joined host takes itself for the first"),),
    ),
    Part(
        "dphist_pipeline/releasing/_attempts.py",
        (HOSTS,),
        (
            Mutation("    refuse_other_folder(charge, folder)\n", "", "a second host draws for a charge"),
            Mutation("(_FIRST if store.joined else folder)", "folder", "a joined host draws for an old charge"),
            Mutation(
                "if host_folder.id != folder.id and published:", "if False:", "missing files are told as a charge"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/publisher.py",
        (REPLAYS, "local/test_publication.py", APPROVALS),
        (
            Mutation(
                "(revision.reason, revision.digest) == (reason, digest)",
                "revision.reason == reason",
                "a changed spec is given the revision of another",
            ),
            Mutation('    if "withdrawn" in audit:\n', "    if False:\n", "what was withdrawn is given back"),
            Mutation("if any(audit[name] != fact for", "if any(False for", "files that the ledger never heard of"),
            Mutation(
                "taken = collection is not None and (store.confidential",
                "taken = False and (store.confidential",
                "a collection takes the name of a release that waits",
            ),
            Mutation('.get("collection") != collection', '.get("collection") != "x"', "a taken name"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/_taken_names.py",
        ("system/test_refusals.py", "system/test_families.py"),
        (
            Mutation("    if clashes:\n", "    if False:\n", "two releases share a view"),
            Mutation("if is_family and _is_used(store, name):", "if False:", "a table takes the name of a release"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/_plans.py",
        (APPROVALS, "unit/test_source_sql.py", "attacks/test_queries_that_reach.py", "unit/test_placeholders.py"),
        (
            Mutation('held=spec.publish == "manual",', "held=False,", "a charge forgets that it waits"),
            Mutation(
                "if spec.source_sql is None or not spec.source_sql.query.needs_decision:",
                "if True:",
                "any query runs without a decision",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/store_decisions.py",
        (
            "unit/test_decisions.py",
            "system/test_upstream.py",
            "attacks/test_code_lists_that_read.py",
            "attacks/test_sources_that_were_not_allowed.py",
            "unit/test_spec_decisions.py",
        ),
        (
            Mutation("if files & set(files_of(other)):", "if False:", "two accounts spend on the same people"),
            Mutation("or _lies_in(root, real):", "or False:", "the store lies in a public folder"),
            Mutation("if _lies_in(os.path.realpath(path), root):", "if False:", "a file of the store is a code list"),
            Mutation(
                "any(_lies_in(file, decision.folder) for file in files)", "False", "records in a folder declared public"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/spec_check.py",
        ("unit/test_spec_decisions.py",),
        (Mutation("charge.release == spec.release for", "False for", "a change is told after the charge, too"),),
    ),
    Part(
        "dphist_pipeline/releasing/spec_decisions.py",
        ("unit/test_spec_decisions.py",),
        (
            Mutation("if shown_digest != self.digest:", "if False:", "another decision is signed than was shown"),
            Mutation("        if of_office(file):\n", "        if False:\n", "the store is declared public"),
            Mutation(
                "file.is_relative_to(folder) for file in records", "False for file in records", "records made public"
            ),
            Mutation(
                "    if account_name not in (None, spec.account):\n",
                "    if False:\n",
                "another account than was named",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/store.py",
        (
            REPLAYS,
            REJECTIONS,
            "attacks/test_exact_files_that_stay.py",
            f"{ATTACKED}::test_a_witness_inside_the_store_is_copied_with_it",
            f"{BUCKETS}::test_altered_numbers_with_their_digest_are_not_what_the_ledger_recorded",
        ),
        (
            Mutation("        ledger.require(list(self.named_entries()))\n", "", "an older ledger spends again"),
            Mutation(
                'sorted(self.confidential.glob("rejected/*/*/*.json"))', "[]", "a ledger from before a rejection spends"
            ),
            Mutation("        witness.refuse_inside(self.root)\n", "", "the witness is copied with the store"),
            Mutation(
                "                    self.vouched_audit(ledger, charge, recorded)\n",
                "",
                "verify takes files of another draw",
            ),
            Mutation(
                "if handle is not None:\n                    _forget(",
                "if False:\n                    _forget(",
                "exact counts of a killed run stay",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/store_decisions.py",
        (RESTORED, REJECTIONS),
        (
            Mutation("    if missing or unknown:\n", "    if unknown:\n", "adopted, and what was spent is forgotten"),
            Mutation("(standing.charges if standing else ())", "()", "charges that the witness holds are forgotten"),
            Mutation("        rejection.unlink()\n", "", "a store that was adopted never opens again"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/release.py",
        ("system/test_dagster_upstream.py", "system/test_dagster_runs.py::test_what_fails_the_check_is_not_published"),
        (
            Mutation(
                "        if attempt.charge is None:\n            before()",
                "        if False:\n            before()",
                "charged though a partition is missing",
            ),
            Mutation('"digest matches": digest == self.digest', '"digest matches": True', "other values than drawn"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/sanitizing.py",
        ("mechanisms/test_foreign_mechanisms.py", "mechanisms/test_every_mechanism.py"),
        (
            Mutation(
                "if estimate.epsilon != self.epsilon or estimate",
                "if estimate",
                "a mechanism spends less than was charged",
            ),
            Mutation(
                "or estimate.charges != budget.charges:", "or False:", "a mechanism tells charges that it made up"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/row_quality.py",
        ("unit/test_quality_spec.py", "publishing/test_quality_published.py"),
        (
            Mutation('Budget(epsilon, "', 'Budget(spec.epsilon, "', "quality for all epsilon"),
            Mutation('spec.neighbours == "substitute")', "False)", "half the noise of quality under substitution"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/frames.py",
        ("system/test_frames_released.py", "unit/test_frames.py"),
        (
            Mutation("        (folder / FILE).unlink(missing_ok=True)\n", "        pass\n", "rows of a frame stay"),
            Mutation('if (plan.source.format == "frame") != (frame is not None):', "if False:", "a frame for a file"),
            Mutation(
                "    raise SourceRefused(where, NOT_READ)\n", "    return work()\n", "an engine's message, values in"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/_plans.py",
        ("system/test_upstream.py",),
        (
            Mutation(
                '("files" in spec.requires or not present)', "(not present)", "a period is charged with a day missing"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/due.py",
        ("system/test_dagster_periods.py",),
        (
            Mutation(
                'state == "unpublished" and not', 'state == "published" and not', "what was charged is never finished"
            ),
            Mutation("if period.key not in charged and", "if", "what is charged is due again"),
            Mutation("if period.key <= first:", "if False:", "all of history is charged at the first tick"),
            Mutation("if key > before_upgrade", "if True", "an upgrade charges what was left out"),
            Mutation("and period.key not in waived\n", "\n", "a waived week is due"),
            Mutation("first = charges[0][0].period", "first = min(charged)", "history by command makes more due"),
            Mutation("+ timedelta(slack_days) < today", "< today", "a page in every period"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/account_runway.py",
        (RUNWAY,),
        (
            Mutation("if rests[year] < 0:", "if rests[year] <= 0:", "the last release is not told"),
            Mutation(
                "max(_due_day(spec, period), today).year", "_due_day(spec, period).year", "a late period, last year"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/_vouching.py",
        (BUCKETS, REPLAYS),
        (
            Mutation('recorded in (None, audit["values_digest"]) and ', "", "values that the ledger did not record"),
            Mutation(
                "all(fact == getattr(charge, name) for name, fact in facts.items())",
                "True",
                "an audit says another epsilon than the ledger",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/answering/past_periods.py",
        ("system/test_compared.py",),
        (
            Mutation("key=int, reverse=True", "key=int", "the first revision of a period is its past"),
            Mutation("if len(periods) == LAST:", "if len(periods) == 0:", "no period is compared"),
            Mutation('if "withdrawn" not in audit:', "if True:", "a withdrawn week is the past"),
            Mutation("if same else {}", "if True else {}", "weeks that count other rows are compared"),
        ),
    ),
    Part(
        "dphist_pipeline/answering/_sudden_changes.py",
        ("answering/test_sudden_changes.py",),
        (
            Mutation(
                "rings = rings & ~(known", "rings = rings & ~(False & known", "last year's feast explains nothing"
            ),
            Mutation("rising[count // 2, places]) / 2", "rising[0, places]) / 2", "no median"),
            Mutation("np.hypot(np.hypot(new.noise, old.noise),", "np.hypot(0 * old.noise,", "noise rings"),
            Mutation("np.where(may_be_nothing, np.inf,", "np.where(False, np.inf,", "a small count that is 0 rings"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/_audit_facts.py",
        ("system/test_plausible.py",),
        (
            Mutation("total.ci_lower <= 0,", "False,", "a week without records goes out as a success"),
            Mutation("[empty, self.compared.hint]", "[empty]", "a renamed code is plausible"),
            Mutation(
                "            attempt.store.keep_doubted(paid.charge)\n",
                "            pass\n",
                "an edit of the spec publishes what was in doubt",
            ),
            Mutation(
                "facts | approved | judgement.facts", "facts | approved", "the audit does not say what was compared"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/answering/cells_beyond_chance.py",
        ("system/test_plausible.py",),
        (
            Mutation("far >= enough or many", "above > 0", "chance is taken for records"),
            Mutation("far >= enough or many", "far >= enough", "many cells a little above zero tell nothing"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/_taken_names.py",
        ("system/test_period_lengths.py",),
        (Mutation("if published != spec.period:", "if False:", "weeks beside months, and rows that count twice"),),
    ),
)
