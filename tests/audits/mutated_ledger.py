"""Alone: `python tests/audits/mutations.py --only /ledger/`; one: `--only 'books.py: a charge of another'`.

Mutations of the ledger: its rules, its chain, signatures, permissions, and the witness; and of safety rules beside it:
a charge comes before its draw, two that race draw once, digests of published files, plausibility's decision.
"""

from __future__ import annotations

from mutations import Mutation, Part

LEDGER = (
    Part(
        "dphist_pipeline/ledger/ledger.py",
        ("unit/test_ledger.py", "unit/test_decisions.py", "unit/test_ledger_damage.py"),
        (
            Mutation(
                "            books.refuse_wrong_clock(writing.now, request.days)\n",
                "",
                "a wrong clock renews an account",
            ),
            Mutation("if expected_id not in (None, books.ledger_id):", "if False:", "another store's ledger is used"),
            Mutation(
                '"nonce": secrets.token_hex(16)', '"nonce": "00" * 16', "two copies make the same charge and draw twice"
            ),
            Mutation(
                "account, *also_of):\n                writing.books.account(name)",
                "account,):\n                writing.books.account(name)",
                "a source is shared with an account that is not there",
            ),
            Mutation("if not is_public_key(key):", "if False:", "a text that is no key decides"),
            Mutation(
                "writing.books.permissions.judge_allowed(account.name, allowance, waiting=True)\n",
                "pass\n",
                "a source of two accounts",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/books.py",
        (
            "unit/test_ledger.py",
            "unit/test_ledger_checkpoint.py",
            "unit/test_decisions.py",
            "unit/test_ledger_notes.py",
            "system/test_wrong_clocks.py",
        ),
        (
            Mutation(
                "if request.epsilon > remaining:", "if request.epsilon >= rest:", "the last of a total is refused"
            ),
            Mutation("        limits.refuse_bad_request(request)\n", "", "a charge of more than any ledger takes"),
            Mutation("        if due > 1:\n", "        if due > 2:\n", "a second draw without a reason"),
            Mutation("year if account.renews else None", "year", "every account renews"),
            Mutation(
                'total=max(account.total, read_exact(facts["total"]))', 'total=read_exact(facts["total"])', "falls"
            ),
            Mutation("max(int(made_at[:4]), self.year)", "int(made_at[:4])", "a clock set back renews an account"),
            Mutation(
                "year is None or self._counts_in", "self._counts_in", "what was spent in other years is forgotten"
            ),
            Mutation(
                "any(year == asked_year for _, year in self.adoptions[adoptions_before:])",
                "False",
                "a charge dated ahead counts later only",
            ),
            Mutation(
                "self.adoptions[adoptions_before:]", "self.adoptions", "a charge after an adoption counts before it"
            ),
            Mutation(
                '        ("epsilon", charge.epsilon, request.epsilon),\n', "", "a charge of another epsilon is joined"
            ),
            Mutation(
                '        ("the spec\'s digest", charge.digest, request.digest),\n', "", "another spec joins a charge"
            ),
            Mutation("    if charge.lost:\n", "    if False:\n", "a charge of a lost ledger is drawn again"),
            Mutation(
                "        self._refuse_rejected(charge)\n        recorded_digest = self.published",
                "        recorded_digest = self.published",
                "what was rejected is published",
            ),
            Mutation(
                "self.carried.add(charge.hash)\n            self._spend(charge, entry)",
                "self.carried.add(charge.hash)",
                "lost",
            ),
            Mutation('self.add_spent(account, facts["year"], read_exact(epsilon))', "pass", "spent elsewhere is lost"),
            Mutation("        if not recorded:\n", "        if False:\n", "a charge without a decision"),
            Mutation(
                "and decision.number > self.adopted_at\n        ]",
                "]",
                "a wrong clock that was confirmed counts after an adoption",
            ),
            Mutation('in ("created", "charged", "adopted"):', '!= "published":', "a decision attests a wrong clock"),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/clock.py",
        ("unit/test_clock.py", "unit/test_entries.py", "unit/test_ledger.py"),
        (
            Mutation("if int(now[:4]) < BUILT:", "if int(now[:4]) < BUILT - 1:", "a clock from before this version"),
            Mutation("(_moment(now) + timedelta(days=1)).year:", "_moment(now).year + 1:", "a clock one year behind"),
            Mutation("timedelta(days=1)).year:", "timedelta(days=0)).year:", "no charge on 31 December"),
            Mutation("max(attested, machine_clock), IDLE", "machine_clock, IDLE", "the ledger attests no time"),
            Mutation("max(attested, machine_clock), IDLE", "attested, IDLE", "the machine attests no time"),
            Mutation("days or LONGEST_PERIOD", "LONGEST_PERIOD", "a weekly release a year ahead"),
            Mutation("if distance > most:", "if distance >= most:", "a release that is late by the distance alone"),
            Mutation(
                " <= timedelta(days=1)\n", " <= timedelta(days=2)\n", "a day that is not the clock's is confirmed"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/opened.py",
        ("unit/test_ledger.py", "unit/test_ledger_damage.py", "unit/test_decisions.py", "unit/test_witness.py"),
        (
            Mutation("hashes.get(number) != of and", "number not in hashes and", "a restored ledger is used"),
            Mutation(
                "if first_entry is None or first_entry.hash != last.hash:",
                "if first_entry is None:",
                "a ledger that was exchanged is charged",
            ),
            Mutation(
                "        if ledger_charge != charge:\n",
                "        if ledger_charge is None:\n",
                "a charge of another history",
            ),
            Mutation(
                "if operators and (operator is None or operator.public not in operators):",
                "if operators and operator is None:",
                "anybody",
            ),
            Mutation(
                "charge is books.revisions(charge.release",
                "charge or books.revisions(charge.release",
                "the witness gets both copies' charges",
            ),
            Mutation("        if books.ledger_id != self.id:\n", "        if False:\n", "another ledger is verified"),
            Mutation("previous_hash=last.hash if last else None", "previous_hash=None", "entries are chained to none"),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/_replay.py",
        ("unit/test_forged_entries.py", "unit/test_ledger_damage.py", "unit/test_decisions.py"),
        (
            Mutation("if seal(entry) != entry.hash:", "if False:", "an edited entry is believed"),
            Mutation("if entry.previous_hash != (previous.hash if previous else None):", "if False:", "a broken chain"),
            Mutation(
                'or facts["year"] != books.year_at(\n        entry.made_at, entry.kind, "waits" in facts\n    ):',
                ":",
                "an entry of another year",
            ),
            Mutation(" and allowed <= own | general)", ")", "a charge by a decision that was taken back"),
            Mutation("(allowed & own and ", "(", "a charge without a decision, or by one for all accounts alone"),
            Mutation("allowed <= own | general", "allowed <= own", "a charge by an engine's version that was allowed"),
            Mutation(
                '(charge.number, charge.account) != (facts["charge"], entry.account)', "False", "about another charge"
            ),
            Mutation('signer_of(entry) != facts["operator"]["key"]', "False", "a first operator who did not sign"),
            Mutation("if canonical_json(facts) != entry.body or", "if", "a body that is read in two ways"),
            Mutation("if books.judge_publication(charge, entry.kind, facts):", "if False:", "published a second time"),
            Mutation(
                'if ("waits" in facts) != (is_stated and "waits" in expected):',
                "if False:",
                "a decision that waits does not say so, or says so and need not",
            ),
            Mutation(
                'if "stated" in facts and "stated" not in expected:',
                "if False:",
                "what waits unlisted is taken as decided by a server",
            ),
            Mutation('or str(facts["waiting"]) != numbers', "", "a list of other decisions than those that wait"),
            Mutation(
                "if books.permissions.judge_allowed(account, facts, waiting) is not None:", "if False:", "allowed twice"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/permissions.py",
        (
            "unit/test_decisions.py",
            "unit/test_forged_entries.py",
            "unit/test_ledger_damage.py",
            "attacks/test_decisions_by_others.py",
        ),
        (
            Mutation("signer_of(entry) not in self.operators:", "signer_of(entry) is None:", "any key decides"),
            Mutation(
                '_ONCE_UNSIGNED = frozenset({"opened", "raised", "keyed"})',
                '_ONCE_UNSIGNED = frozenset({"opened", "raised", "keyed", "allowed"})',
                "planted decisions in an old ledger",
            ),
            Mutation(
                "if key is not None and key == self._latest(signer_of(first)):", "if False:", "one operator signs twice"
            ),
            Mutation(
                "return bool(two) and len(self.operators) > 1",
                "return bool(two) and len(self.operators) > 2",
                "one operator adds a second key alone",
            ),
            Mutation('return "denies" in facts and', "return False and", "one operator denies a row of the witness"),
            Mutation(
                "for number in numbers:\n            del self.waiting[number]\n",
                "for number in numbers:\n            pass\n",
                "an adoption is signed after a charge that it would end",
            ),
            Mutation("            if others:\n", "            if False:\n", "a source belongs to two accounts"),
            Mutation(
                "            self.judge_allowed(str(first.account), first.facts)\n",
                "            pass\n",
                "became another's",
            ),
            Mutation(
                "if decision is None or account not in (None, decision.account):",
                "if decision is None:",
                "one account takes back what another was allowed",
            ),
            Mutation(
                '_WAITING = frozenset({"raised", "allowed", "disallowed"})',
                '_WAITING = frozenset({"allowed", "disallowed"})',
                "one operator raises a total alone",
            ),
            Mutation(
                "        return (account == EVERYWHERE and",
                "        return (False and",
                "one operator decides which engine reads the records of an account of two",
            ),
            Mutation(") or is_shared or same", ") or same", "records that overlap are read by one operator's word"),
            Mutation(
                "self.owners(draft.reading, waiting)",
                "self.owners(draft.reading)",
                "a source that waits for its second signature is taken meanwhile",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/base/reading.py",
        ("unit/test_decisions.py", "attacks/test_sources_that_were_not_allowed.py"),
        (
            Mutation(
                "(self.folder, self.name, self.table) == (other.folder, other.name, other.table)",
                "self.address == other.address",
                "the same files under another address",
            ),
            Mutation(
                'if each.name != "unit_kinds")',
                'if each.name not in ("unit_kinds", "unit_normalise"))',
                "other people",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/signing.py",
        (
            "unit/test_entries.py",
            "unit/test_decisions.py",
            "unit/test_operator_keys.py",
            "attacks/test_decisions_by_others.py",
        ),
        (
            Mutation(
                '        key.verify(bytes.fromhex(signed["signature"]), _text(bare).encode("ascii"))\n',
                "",
                "any signature",
            ),
            Mutation(
                'if name != "hash"})',
                'if name not in ("hash", "previous_hash")})',
                "a decision is signed for any place in the chain",
            ),
            Mutation(
                'if name != "hash"})', 'if name not in ("hash", "account")})', "a decision is signed for any account"
            ),
            Mutation("len(text) != 64 or text != text.lower()", "len(text) != 64", "one key in two spellings"),
            Mutation("write_durably(path, content)", "path.write_bytes(content)", "others read the operator's key"),
            Mutation("stat.S_IRWXG | stat.S_IRWXO", "stat.S_IRWXO", "a key that a group may read signs"),
            Mutation("stat.S_IWGRP | stat.S_IWOTH", "stat.S_IWOTH", "a key that a group may replace signs"),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/entries.py",
        ("unit/test_amounts.py", "unit/test_entries.py", "unit/test_ledger_notes.py", "unit/test_ledger_damage.py"),
        (
            Mutation('del fields["hash"]', 'del fields["hash"], fields["previous_hash"]', "a chain that is not sealed"),
            Mutation('del fields["hash"]', 'del fields["hash"], fields["revision"]', "a revision that can be edited"),
            Mutation('del fields["hash"]', 'del fields["hash"], fields["made_at"]', "a time that can be edited"),
            Mutation(
                "if amount is None or exact_text(amount) != text:", "if amount is None:", "one amount in two spellings"
            ),
            Mutation(
                'year=facts["year"],\n        folder',
                "year=int(entry.made_at[:4]),\n        folder",
                "a clock set back",
            ),
            Mutation('        held=facts.get("held", False),\n', "", "a charge that needs an approval does not wait"),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/limits.py",
        ("unit/test_ledger.py", "unit/test_ledger_damage.py"),
        (
            Mutation("_ACCOUNT_NAME.fullmatch(", "_ACCOUNT_NAME.match(", "an account's name with anything at its end"),
            Mutation(
                "if amount.denominator > _LARGEST_DENOMINATOR:", "if False:", "an amount that cannot be read back"
            ),
            Mutation("1 <= request.revision <=", "0 <= request.revision <=", "a revision 0"),
            Mutation(
                'or is_blank(text_of("reason", reason, longest=2000)):',
                'or not text_of("reason", reason, longest=2000):',
                "a reason of blanks",
            ),
            Mutation("    if is_disguised(value):\n", "    if False:\n", "text that is shown backwards"),
            Mutation("if reason and not without_invisible", "if not without_invisible", "a charge needs a reason"),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/ledger.py",
        ("system/test_waiting_on_server.py",),
        (
            Mutation(
                "if (unstated or waits) and self._file",
                "if False and self._file",
                "what waits unlisted is charged on a server",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/letters.py",
        ("unit/test_letters.py",),
        (Mutation("(0x2028, 0x202E)", "(0x2028, 0x202A)", "text that is shown backwards is taken"),),
    ),
    Part(
        "dphist_pipeline/ledger/postgresql.py",
        ("system/test_waiting_on_server.py",),
        (
            Mutation('in ("23505", "DPH01")', 'in ("23505",)', "a row that came in between is called damage"),
            Mutation(
                "return waits if self._are_former(connection) else unstated",
                "return waits and self._are_former(connection)",
                "what waits unlisted is taken as decided by a server",
            ),
        ),
    ),
    Part(
        "sql/ledger/always_next.sql",
        ("system/test_waiting_on_server.py",),
        (
            Mutation(
                "            AND made.number <> ALL (waiting)\n",
                "",
                "a charge by a decision that waits for a signature",
            ),
            Mutation(" AND taken.number <> ALL (waiting)", "", "what waits to be taken back stops releases"),
            Mutation("AND kind = 'raised' AND number <> ALL (waiting)", "AND kind = 'raised'", "a raise that waits"),
            Mutation("AND kind = 'listed'", "AND kind = 'none'", "what an upgrade lists counts as decided"),
            Mutation("->'signatures' = '2')", "->'signatures' = '3')", "a charge by a decision that waits unlisted"),
            Mutation("'raised', 'adopted')", "'raised')", "an adoption that waits counts on a server"),
        ),
    ),
    *(
        Part(f"sql/ledger/witness_{table}.sql", ("attacks/test_rows_planted_in_a_witness.py",), mutations)
        for table, mutations in {
            "charge": (
                Mutation("gcd(top, bottom) <> 1 OR ", "", "a price in two spellings"),
                Mutation("OR NEW.revision <> 1 +", "OR NEW.revision < 1 +", "a revision after which none is left"),
                Mutation(" AND made.hash = NEW.hash)", " AND false)", "a charge is held twice, at two prices"),
            ),
            "answer": (Mutation("AND made.hash = NEW.charge\n", "\n", "an answer to what nobody charged"),),
            "head": (Mutation("NEW.number <= (SELECT", "NEW.number < (SELECT", "another hash of the last entry"),),
            "place": (Mutation("NEW.number IS DISTINCT FROM", "NEW.number <", "a number that leaves no next one"),),
        }.items()
    ),
    Part(
        "dphist_pipeline/ledger/database.py",
        (
            "unit/test_ledger_damage.py",
            "unit/test_ledger.py",
            "unit/test_ledger_races.py",
            "unit/test_witness_races.py",
        ),
        (
            Mutation('"BEGIN" if reads else "BEGIN IMMEDIATE"', '"BEGIN"', "two that charge at once both fail"),
            Mutation('"synchronous=EXTRA"', '"synchronous=OFF"', "a charge may be lost"),
            Mutation("os.O_EXCL | os.O_WRONLY, 0o600", "os.O_EXCL | os.O_WRONLY, 0o644", "others read the ledger"),
            Mutation(
                "os.link(draft.path, self.path)", "os.replace(draft.path, self.path)", "a new ledger replaces one"
            ),
            Mutation("            sync_folder(self.path.parent)\n", "", "a new ledger may vanish in a crash"),
            Mutation('_once("charged_once", "charged", *_KEY)\n', "", "the table takes a charge twice"),
            Mutation('if sql_by_kind["trigger"] != self.triggers or', "if", "a ledger without its triggers is used"),
            Mutation("?mode=rw", "?mode=rwc", "a missing ledger is made anew, empty"),
            Mutation(
                '                if intent == "write":\n                    connection.commit()\n',
                '                if intent != "read":\n                    connection.commit()\n',
                "a rehearsal is written",
                "",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/witness.py",
        ("unit/test_witness.py", "unit/test_witness_file.py", "attacks/test_copies_that_draw_again.py"),
        (
            Mutation("            if generation < current[0]:\n", "            if False:\n", "a superseded copy draws"),
            Mutation(
                "ledger.charges[position] != charge:",
                "ledger.charges[position].hash != charge.hash:",
                "a charge's hash beside another price is taken for the charge",
            ),
            Mutation("if number < LARGEST_NUMBER:\n", "if True:\n", "a place without a next one stops releases"),
            Mutation(
                "position >= len(ledger.charges) or", "position < len(ledger.charges) and", "a ledger that is behind"
            ),
            Mutation("if generation < current[0] or started_by", "if started_by", "an older generation notes its head"),
            Mutation(" or started_by not in (None, current[1]):", ":", "two copies adopted at once both go on"),
            Mutation("current[0] >= ledger.generation:", "current[0] > ledger.generation:", "two adoptions"),
            Mutation("number > head[0]:", "number >= head[0]:", "a head is noted twice"),
            Mutation("and _is_same_place(own, ledger)):", "and own == ledger):", "the ledger by a link"),
            Mutation("if generation > current[0]:", "if generation > current[0] + 1:", "a witness that is put back"),
            Mutation(" inode {folder.stat().st_ino}", "", "a copy in the same place is not told"),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/witness_file.py",
        ("unit/test_witness_file.py", "unit/test_witness.py"),
        (
            Mutation('    sa.UniqueConstraint("store", "generation", "release", "period", "revision"),\n', "", "twice"),
            Mutation('        "replaced": f"BEFORE INSERT ON {table.name} WHEN {exists}",\n', "", "rows are replaced"),
            Mutation(
                "            if version != SCHEMA_VERSION:\n", "            if False:\n", "a newer witness is used"
            ),
        ),
    ),
    # From here on: safety rules outside of the ledger's folder.
    Part(
        "dphist_pipeline/releasing/run.py",
        ("golden/test_kept_store.py",),
        (
            Mutation(
                "        if not store.published(key).exists():\n            store.refuse_old_layout()\n",
                "",
                "charged in a store that earlier versions read, and not published",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/run.py",
        ("system/test_replay.py",),
        (
            Mutation(
                "published_digest, _refusing(answers_lost(self.key))",
                "published_digest, once",
                "drawn again once it was published",
            ),
            Mutation(
                "record=lambda: self.ledger.record_published(charge, values_digest(estimate)),",
                "record=lambda: None,",
                "the ledger does not know what is out",
            ),
            Mutation(
                "if published_digest is not None and published_digest != values_digest(estimate):",
                "if False:",
                "other values than published",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/run.py",
        (
            "attacks/test_copies_that_draw_again.py",
            "attacks/test_found_by_attackers.py::test_what_was_disallowed_since_the_charge_is_not_read",
            "attacks/test_found_by_attackers.py::test_a_decision_is_taken_back_between_counting_and_drawing",
            "attacks/test_found_by_attackers.py::test_a_decision_is_not_undone_by_putting_the_ledger_back_to_before_it",
        ),
        (
            Mutation("if charge.number < last_adoption:", "if False:", "drawn again after an adoption"),
            Mutation(
                "        if published_digest is None:\n            self._vouch(",
                "        if False:\n            self._vouch(",
                "no witness knows",
            ),
            Mutation(
                "            store.refuse_truncated_ledger(ledger, witness)\n        key",
                "        key",
                "a cut ledger charges",
            ),
            Mutation(
                "decisions = self.refuse_overtaken(Race.DISALLOWED_BEFORE_READING)",
                "decisions = tuple(of for of in self.ledger.books().permissions.ever.values() if of.reading)",
                "read though the source was disallowed since the charge",
            ),
            Mutation(
                "            self.refuse_overtaken(Race.DISALLOWED_WHILE_COUNTING)\n            return exact",
                "            return exact",
                "drawn though the source was disallowed during the count",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/run.py",
        (
            "system/test_upstream.py",
            "system/test_refused_accounts.py",
            "system/test_refusals.py",
        ),
        (Mutation("            ledger.check(request)\n", "            pass\n", "refused after the records are read"),),
    ),
    Part(
        "dphist_pipeline/releasing/run.py",
        (
            "system/test_resume.py",
            "attacks/test_exact_files_that_stay.py::test_no_exact_count_lies_on_the_disk_while_a_measurement_draws",
            "system/test_races.py::test_a_revision_overtaken_by_another_spends_nothing_until_asked_again",
        ),
        (
            Mutation("once: Load = cache(load)", "once: Load = load", "a period is read twice for one charge"),
            Mutation("    cube.unlink()\n", "", "exact counts lie on the disk while measurements draw"),
            Mutation("if charge.reason != self.request.reason:", "if False:", "another's revision is given back"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/run.py",
        (
            "system/test_rejections.py",
            "system/test_approvals.py",
            "system/test_hosts.py",
        ),
        (
            Mutation(
                "        self.refuse_overtaken(Race.REJECTED_WHILE_DRAWING)\n        store.forget",
                "        store.forget",
                "what was rejected while a measurement drew goes on",
            ),
            Mutation(
                "            self.refuse_overtaken(Race.CHARGED_BY_OTHER_HOST_SINCE)\n",
                "",
                "two hosts that charge at once both draw",
            ),
            Mutation(
                "self.refuse_overtaken(Race.CHARGED_BY_OTHER_HOST_BEFORE, published=published_digest is not None)",
                "pass",
                "a host draws for another's charge",
            ),
            Mutation(
                "            finish_withdrawals(self.store, self.ledger)\n",
                "",
                "what was withdrawn while it was published answers",
            ),
            Mutation(
                "if published_digest is not None or charge.number > last_adoption:",
                "if False:",
                "two hosts draw for one charge",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/_approvals.py",
        (
            "system/test_rejections.py",
            "system/test_approvals.py",
        ),
        (
            Mutation(
                "if is_held and ledger.published_digest(charge) is None:",
                "if False:",
                "published before anybody approved",
            ),
            Mutation(
                "        if not witness.exists():\n", "        if False:\n", "an older ledger draws a rejected one"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/_races.py",
        ("system/test_hosts.py",),
        (Mutation("    refuse_other_folder(charge, folder)\n", "", "a second host draws for a charge"),),
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
        (Mutation("if files & set(files_of(other)):", "if False:", "two accounts spend on the same people"),),
    ),
    Part(
        "dphist_pipeline/releasing/store.py",
        (
            "system/test_replay.py",
            "system/test_rejections.py",
            "attacks/test_exact_files_that_stay.py",
            "attacks/test_found_by_attackers.py::test_a_witness_inside_the_store_is_copied_with_it",
            "attacks/test_altered_publications.py::test_altered_numbers_with_their_digest_are_not_what_the_ledger_recorded",
        ),
        (
            Mutation("        ledger.require(list(self.named_entries()))\n", "", "an older ledger spends again"),
            Mutation(
                "                    self.read_vouched_audit(charge, recorded)\n",
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
        (
            "system/test_restored_backups.py",
            "system/test_rejections.py",
        ),
        (Mutation("seen = standing.charges if standing else ()", "seen = ()", "what the witness holds is forgotten"),),
    ),
    Part(
        "dphist_pipeline/releasing/store_decisions.py",
        ("attacks/test_rows_planted_in_a_witness.py",),
        (
            Mutation(
                "            and store.missing_head(ledger, witness) is None\n",
                "",
                "one operator denies a ledger's end",
            ),
            Mutation("standing is not None\n            and", "standing is None or", "one operator begins a witness"),
            Mutation(
                "            [charge.facts() for charge in adoption.carried],\n",
                '            stated["carried"],\n',
                "an adoption is signed that forgets what the witness saw since",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/sanitizing.py",
        (
            "mechanisms/test_foreign_mechanisms.py",
            "mechanisms/test_every_mechanism.py",
        ),
        (
            Mutation(
                "if estimate.epsilon != self.epsilon or estimate",
                "if estimate",
                "a mechanism spends less than was charged",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/due.py",
        ("system/test_dagster_periods.py",),
        (Mutation("if period.key < first:", "if False:", "all of history is charged at the first tick"),),
    ),
    Part(
        "dphist_pipeline/releasing/_vouching.py",
        (
            "attacks/test_altered_publications.py",
            "system/test_replay.py",
        ),
        (Mutation('recorded in (None, audit["values_digest"]) and ', "", "values that the ledger did not record"),),
    ),
    Part(
        "dphist_pipeline/releasing/_audit_facts.py",
        ("system/test_plausible.py",),
        (
            Mutation("total.ci_lower <= 0,", "False,", "a week without records goes out as a success"),
            Mutation("[empty, self.compared.hint]", "[empty]", "a renamed code is plausible"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/run.py",
        ("system/test_plausible.py",),
        (
            Mutation(
                "                self.store.mark_for_approval(charge)\n",
                "                pass\n",
                "an edit of the spec publishes what was in doubt",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/values_digests.py",
        (
            "attacks/test_altered_publications.py",
            "publishing/test_quality_published.py",
            "system/test_replay.py",
        ),
        (
            Mutation(", *(table.values for table in estimate.quality)]", "]", "quality is in no digest"),
            Mutation(
                '"unbiased_estimate": unbiased,', '"unbiased_estimate": None,', "unbiased estimates are in no digest"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/published_files.py",
        ("attacks/test_altered_publications.py",),
        (
            Mutation(
                '    if _values_digest(published, audit) != audit["values_digest"]:',
                "    if False:",
                "altered values with digests of files made anew are read",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/derived_files.py",
        ("publishing/test_notices.py::test_no_text_of_another_file_is_published_by_a_notice",),
        (
            Mutation(
                "open_below(public, page.relative_to(public).as_posix())",
                'page.open("rb")',
                "a notice publishes the text of a file that a link names",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/release_files.py",
        (
            "golden/test_published_schema.py",
            "publishing/test_release_files.py",
            "system/test_replay.py",
            "system/test_hosts.py",
            "publishing/test_quality_published.py",
        ),
        (
            Mutation(
                "        return False\n    sync_folder",
                "        return True\n    sync_folder",
                "both of two were first",
            ),
            Mutation("        sync_file(staging / name)\n", "", "what was published may be lost"),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/_plans.py",
        ("system/test_signed_queries_released.py",),
        (
            Mutation(
                "    if spec.source_sql is None:\n        return {}",
                "    if True:\n        return {}",
                "a query runs that nobody signed",
            ),
            Mutation(
                "all(decision.tries for decision in decisions if decision.query is not None)",
                "True",
                "a query that was signed to fail drops people instead",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/spec/_query_reach.py",
        (
            "attacks/test_queries_that_reach.py",
            "unit/test_signed_queries.py",
        ),
        (Mutation("if name.lower() not in TABLE_FUNCTIONS:", "if False:", "read_csv() reads any file"),),
    ),
    Part(
        "dphist_pipeline/cli/failures.py",
        ("unit/test_cli.py",),
        (Mutation("kind = type(error).__name__\n", "kind = str(error)\n", "an engine's message, values in"),),
    ),
    Part(
        "dphist_pipeline/local/contributor.py",
        ("local/test_contributor.py",),
        (
            Mutation(
                'earlier_answer = record["answered"].get(question.digest)',
                "earlier_answer = None",
                "fresh coins at every asking",
            ),
            Mutation("                self._write(record)\n", "", "a report is given away before its record"),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/individual.py",
        ("unit/test_individual_accounts.py",),
        (
            Mutation(
                "return ceil(epsilon * PARTS / rows)", "return floor(epsilon * PARTS / rows)", "rows cost too little"
            ),
            Mutation(
                "total * (1 - left_out) - everybody", "total * (1 - left_out)", "what everybody paid is forgotten"
            ),
            Mutation(
                "total * (1 - left_out) - everybody", "total - everybody", "the share of `left_out` is spent twice"
            ),
            Mutation("Fraction(0) if everybody else", "", "a second number of who is left out, after a lost state"),
            Mutation('"text", "whole number", "UUID"', '"text", "whole number", "UUID", "number"', "7, 7.0 and 7.00"),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/ledger.py",
        ("unit/test_individual_accounts.py",),
        (
            Mutation(
                'if account.is_individual and self._file.engine != "sqlite":',
                "if False:",
                "a server takes what it lacks",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/moving.py",
        ("unit/test_individual_accounts.py",),
        (
            Mutation(
                'if books.permissions.individual and new.engine != "sqlite":', "if False:", "a server is given it later"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/books.py",
        ("unit/test_individual_accounts.py",),
        (
            Mutation(
                "if (granted.year, granted.after) != (year, self.paid_at(account.name)):",
                "if granted.year != year:",
                "of two charges at once, the second knows nothing of the first",
            ),
            Mutation(
                "if (granted.year, granted.after) != (year, self.paid_at(account.name)):",
                "if granted.after != self.paid_at(account.name):",
                "what was filtered in December is charged in January",
            ),
            Mutation("            everybody = granted.everybody\n", "", "a charge counts nobody, and is paid"),
            Mutation(
                "if any(charge.granted and charge.granted.state == granted.state for charge in self.every_charge()):",
                "if False:",
                "a state of two charges",
            ),
            Mutation(
                "if granted.left_out != price_of_left_out(account.total, account.left_out, everybody):",
                "if False:",
                "a number of who is left out for any price",
            ),
            Mutation(
                "            limits.refuse_bad_share(replace(account, total=total))\n",
                "            pass\n",
                "a number whose price no noise follows",
            ),
            Mutation("return max([self.adopted_at, *(", "return max([0, *(", "what went missing is not paid"),
            Mutation(
                "                found.append((adopted[0], epsilon, charge))\n", "                pass\n", "dated ahead"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/permissions.py",
        ("unit/test_individual_accounts.py",),
        (
            Mutation("            _refuse_unfiltered(request)\n", "            pass\n", "a quality table for nothing"),
            Mutation("if reading is None or reading != fixed:", "if reading is None:", "people by other names"),
            Mutation(
                "if reading is None or reading != fixed:", "if reading and reading != fixed:", "a query is allowed"
            ),
            Mutation("not KINDS.issuperset(kinds):", "False:", "decimals name units"),
        ),
    ),
    Part(
        "dphist_pipeline/ledger/_replay.py",
        ("unit/test_individual_accounts.py",),
        (
            Mutation(
                "if (charge.granted is not None) != account.is_individual:", "if False:", "a charge without a state"
            ),
        ),
    ),
)
