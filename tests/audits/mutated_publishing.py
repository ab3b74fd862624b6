"""Alone: `python tests/audits/mutations.py --only /publishing/`; one: `--only '_published_pages.py: a card'`.

Mutations of publishing: files that appear whole or not at all, digests, current revisions, cards, statements.
Of what is sent to a bucket, the manifest alone: readers trust it.
"""

from __future__ import annotations

from mutations import Mutation, Part

SCHEMA = "golden/test_published_schema.py"
QUALITY = "publishing/test_quality_published.py"
CURRENT = "publishing/test_current_files.py"
CARD = "publishing/test_card.py"
LANGUAGES = "publishing/test_languages.py"
INDEX = "publishing/test_index_pages.py"
RENDERED = "publishing/test_rendered_pages.py"
APPROVALS = "system/test_approvals.py"

BUCKETS = "attacks/test_buckets_of_others.py"

PUBLISHING = (
    Part(
        "dphist_pipeline/publishing/values_digests.py",
        (BUCKETS, QUALITY, "system/test_replay.py"),
        (
            Mutation(", *(table.values for table in estimate.quality)]", "]", "quality is in no digest"),
            Mutation(
                '"unbiased_estimate": unbiased,', '"unbiased_estimate": None,', "unbiased estimates are in no digest"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/published_files.py",
        (BUCKETS,),
        (
            Mutation(' and audit["files"].keys() <= set(SEALED)', "", "an audit names any file"),
            Mutation(
                '    if _values_digest(published, audit) != audit["values_digest"]:',
                "    if False:",
                "altered values with digests of files made anew are read",
            ),
            Mutation("                refuse_links(public, folder)\n", "", "a folder of a release is a link"),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/bucket_copy.py",
        (BUCKETS, "system/test_object_storage.py"),
        (
            Mutation("        read(folder)\n", "", "what was altered is sent"),
            Mutation("now - KEPT} - object_names", "now - KEPT}", "what is named is deleted"),
            Mutation(
                'if manifest.publisher not in ("", publisher):',
                "if False:",
                "a host replaces what another one published",
            ),
            Mutation(
                "os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle",
                "os.O_RDONLY | os.O_DIRECTORY, dir_fd=handle",
                "a file is opened through a link",
                equivalent="`PublishedFolder.all_in` refuses the links that are there before; this one holds in a race",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/release_files.py",
        (SCHEMA, "publishing/test_release_files.py", "system/test_replay.py", "system/test_hosts.py", QUALITY),
        (
            Mutation("if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):", "if True:", "the second of two fails"),
            Mutation(
                "        return False\n    sync_folder",
                "        return True\n    sync_folder",
                "both of two were first",
            ),
            Mutation("        sync_file(staging / name)\n", "", "what was published may be lost"),
            Mutation("    sync_folder(published.parent)\n", "", "the name of what was published may be lost"),
            Mutation("(staging / name).chmod(0o644)", "(staging / name).chmod(0o600)", "nobody else can read it"),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/parquet_tables.py",
        (SCHEMA, "answering/test_linear_answers.py", "answering/test_group_sums.py"),
        (
            Mutation("sign in (0.0, -1.0, 1.0))", "sign in (0.0, -0.5, 0.5))", "intervals of half the width"),
            Mutation("return near if Fraction(near) >= value", "return near if True", "an epsilon told too small"),
            Mutation(
                "        write_statistics=False,\n", "        write_statistics=True,\n", "other bytes for equal values"
            ),
            Mutation(
                "return sizes**2 if estimate.sums is not None else sizes", "return sizes", "noise of a group's cells"
            ),
            Mutation(
                '"ledger_hash": facts["ledger"]["hash"]', '"ledger_hash": facts["spec_digest"]', "no entry is named"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/derived_files.py",
        (CURRENT,),
        (
            Mutation('if is_here and "withdrawn" not in audit:', "if is_here:", "what was withdrawn is current"),
            Mutation("key=int, reverse=True):", "key=int):", "the first revision is current"),
            Mutation(
                "sorted(filter(str.isdecimal, revisions), key=int,", "sorted(filter(str.isdecimal, revisions),", "10"
            ),
            Mutation('or int(entry["revision"]) > revision', "or True", "an altered audit is current"),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/_published_pages.py",
        (APPROVALS, "publishing/test_card_of_reports.py"),
        (
            Mutation("card, audit).replace(_TOP, _TOP + _withdrawal(audit), 1)", "card, audit)", "a card with no mark"),
            Mutation(
                '"reason": escape(withdrawn["reason"])', '"reason": withdrawn["reason"]', "a reason is markup on a card"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/due.py",
        ("unit/test_ledger_notes.py", "system/test_rejections.py", APPROVALS),
        (Mutation("if state in OPEN_STATES]", "if True]", "what was published waits"),),
    ),
    Part(
        "dphist_pipeline/publishing/statements.py",
        ("unit/test_ledger.py", "system/test_rejections.py", "unit/test_decisions.py", APPROVALS),
        (
            Mutation("year if account.renews else None), account.name", "None), account.name", "years add up"),
            Mutation("if entry.kind == kind]", "if True]", "every note is a withdrawal"),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/manifest.py",
        ("system/test_object_states.py::test_a_manifest_that_names_anything_else_is_refused",),
        (
            Mutation("    if not is_path(path):", "    if False:", "any path"),
            Mutation("    if name != path and not", "    if False and not", "a reader is sent to any object"),
            Mutation("0 <= size <= LARGEST_OBJECT", "True", "an object that fills the disk"),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/_card.py",
        (CARD, QUALITY),
        (
            Mutation("together = epsilon * people", "together = epsilon", "what ten people together are promised"),
            Mutation("after - timedelta(days=1)}", "after}", "a day of the next period"),
            Mutation(
                "estimate.unbiased is None or not np.array_equal(",
                "not np.array_equal(estimate.values, estimate.values) and (",
                "no warning of smoothing",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/formatting.py",
        (CARD, "publishing/test_pictures.py"),
        (
            Mutation(
                "math.ceil(math.exp(power) * 10**digits - 1e-9)",
                "math.floor(math.exp(power) * 10**digits)",
                "a ratio told too small",
            ),
            Mutation("high = math.ceil(most * 100", "high = math.floor(most * 100", "odds told too small"),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/ledger_report.py",
        ("publishing/test_ledger_page.py", "unit/test_decisions.py"),
        (
            Mutation("signers.get(key, gettext(", "str(gettext(", "nobody knows who decided"),
            Mutation('"left": as_text(statement.left),', '"left": as_text(statement.total),', "nothing was spent"),
        ),
    ),
    Part(
        "dphist_pipeline/languages/texts.py",
        (LANGUAGES,),
        (
            Mutation(
                "own = plural if plural and spoken.plural(number) else message", "own = message", "no plural in English"
            ),
            Mutation(
                "forms[spoken.plural(number) if len(forms) > 1 else 0]", "forms[0]", "no plural in other languages"
            ),
            Mutation("_SPOKEN.reset(before)", "pass", "what comes after a page is told in its language"),
            Mutation(
                "return 0 if abs(number) < 2 else 1", "return 0 if number == 1 else 1", "nothing in French is several"
            ),
            Mutation('ord("."): spoken.decimal', 'ord("."): "."', "a decimal point among decimal commas"),
            Mutation('.replace(" to ", pgettext("days", " to "))', "", "an English word between days"),
        ),
    ),
    Part(
        "dphist_pipeline/answering/croissant.py",
        ("publishing/test_croissant.py",),
        (Mutation('if entry["grid"] == latest["grid"]]', "if True]", "files of another grid in one set"),),
    ),
    Part(
        "dphist_pipeline/shown_below.py",
        ("publishing/test_shown_below.py",),
        (
            Mutation(
                "return Masks(low, low_too, low | low_too)",
                "return Masks(low, low_too, low & low_too)",
                "an interval stands beside a hidden middle of it",
            ),
            Mutation(
                "self.estimate & ~self.unbiased", "np.zeros_like(self.beside)", "a hidden estimate is told beside"
            ),
            Mutation(
                ">= limit else without_figures", ">= 0 else without_figures", "a change tells the figure that is hidden"
            ),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/_release_history.py",
        ("publishing/test_shown_below.py",),
        (Mutation("math.nan if below else number.value", "number.value", "a page holds the figure that it hides"),),
    ),
    Part(
        "dphist_pipeline/answering/plot.py",
        ("publishing/test_shown_below.py",),
        (Mutation("Picture.of_grid(grid).told_as(audit)", "Picture.of_grid(grid)", "a picture draws a hidden figure"),),
    ),
    Part(
        "dphist_pipeline/publishing/picture_sums.py",
        ("publishing/test_shown_below.py",),
        (
            Mutation(
                "return self.hidden | (self.high - self.reach < self.limit)",
                "return self.hidden",
                "the interval of a picture tells a hidden figure",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/_deployment.py",
        ("publishing/test_deployment_fields.py",),
        (Mutation('if audit.get("model") == "local":', "if False:", "a registry is told the wrong model"),),
    ),
    Part(
        "dphist_pipeline/publishing/_published_pages.py",
        (RENDERED, LANGUAGES),
        (
            Mutation('if content["form"] == _FORM and read and', "if read or", "any list of pages is read"),
            Mutation('return match[1] if match is not None else ""', 'return ""', "a mark in English on a German card"),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/_index_pages.py",
        (INDEX, LANGUAGES, "answering/test_picker_files.py"),
        (
            Mutation("with in_language(about.language):", "with in_language(''):", "the page of all is in English"),
            Mutation(
                "publication.stands and current[publication.period] != publication for publication",
                "False for publication",
                "nothing was superseded",
            ),
            Mutation(
                "if publication.withdrawn_on and publication.period not in standing",
                "if False",
                "no page warns of a withdrawal",
            ),
            Mutation("reversed(points[:most])", "reversed(points)", "the page of all grows with every period"),
            Mutation(
                "listed, sorted(audits), _picker(release),",
                "listed, _picker(release),",
                "a withdrawn revision that is not the latest changes no page",
            ),
            Mutation("sorted(audits), _picker(release),", "sorted(audits),", "a list that changed changes no page"),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/_release_history.py",
        (INDEX,),
        (
            Mutation('    if "tables" in audit:', "    if False:", "a family has no total"),
            Mutation("if abs(below - above) <= EVEN:", "if True:", "an uneven interval is told as ±"),
            Mutation("total = {} if withdrawn else", "total =", "a withdrawn publication tells its total"),
        ),
    ),
    Part(
        "dphist_pipeline/publishing/_index_pages.py",
        (INDEX,),
        (Mutation('for sign in "<>&":', 'for sign in "":', "a title ends the script that holds it"),),
    ),
    Part(
        "dphist_pipeline/publishing/published_release.py",
        (RENDERED,),
        (
            Mutation("content_of((*before,", "content_of((", "earlier renderings are forgotten"),
            Mutation('"withdrawn" in audit and file.name == CARD\n', "False\n", "a withdrawn card loses its mark"),
            Mutation(
                "        replace_public(folder / RENDERED, self.content, scratch)\n",
                "",
                "pages are replaced before their list",
            ),
        ),
    ),
    Part(
        "dphist_pipeline/releasing/public_folder.py",
        (RENDERED,),
        (Mutation("            ledger.record_rendered(", "            str(", "the ledger knows no pages"),),
    ),
    Part(
        "dphist_pipeline/releasing/_vouching.py",
        (RENDERED,),
        (Mutation("if pages is not None and pages not in", "if False and pages not in", "pages that nobody entered"),),
    ),
)
