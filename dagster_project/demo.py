"""The demo: people who do not exist, released through Dagster, then asked in SQL. Run by `make demo`.

Run it again: every published file keeps its bytes, nothing is spent and no record is read.
"""

from __future__ import annotations

import atexit
import gc
import hashlib
import json
import os
import shutil
import sys
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from dagster_project.synthetic import FIRST_DAY, PATIENTS, PERSONS, WEEKS, write_admissions, write_population
from dphist_pipeline.cli.terminal import print_table
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.ledger.ledger import Account
from dphist_pipeline.ledger.signing import KEY, Operator
from dphist_pipeline.ledger.witness_file import WITNESS
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing import release as verbs
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import Store

if TYPE_CHECKING:
    import dagster as dg

PROJECT = Path(__file__).resolve().parent.parent
FOLDER = PROJECT / "demo"
SPECS = PROJECT / "dagster_project" / "defs"
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
QUESTION = "r.dph_box('r.weekly_admissions', {'age': [60, NULL], 'ward': 'surgery'})"
CUT = """
SELECT greatest(0, ci_lower), greatest(0, estimate) + (ci_upper - ci_lower) / 2
FROM r.dph_quality('r.weekly_admissions') WHERE statistic = 'cut' AND axis IS NULL ORDER BY period DESC LIMIT 1
"""
WEEK_KEYS = [(FIRST_DAY + timedelta(weeks=week)).isoformat() for week in range(WEEKS)]
REVISED, WHY_REVISED = WEEK_KEYS[-2], "the demo shows a revision; its records are the same, its noise is new"

PUBLISHER = "An invented office"
NOTICE = "These people are invented: this is the demo of the program."

console = Console(soft_wrap=True, highlight=False)


def main() -> None:
    """Sets up, releases all periods in one process on one Dagster instance, and shows what can be asked."""
    (FOLDER / "data").mkdir(parents=True, exist_ok=True)
    home = FOLDER / "dagster_home"
    home.mkdir(exist_ok=True)
    shutil.copy(PROJECT / "dagster_project" / "dagster.yaml", home / "dagster.yaml")
    os.environ |= {"DAGSTER_HOME": str(home), "DPHIST_STORE": str(FOLDER / "store")}
    # A real office keeps these apart from the store. The demo leaves nothing behind outside of its folder.
    os.environ |= {WITNESS: str(FOLDER / "witness.sqlite"), KEY: str(FOLDER / "operator.key")}
    write_people()
    store = open_store()
    before, entries = digests(store), len(store.ledger().entries())
    replays = [*release_everything(), revise_a_week()]
    if all(replays) and digests(store) == before and len(store.ledger().entries()) == entries:
        console.print("\n[bold green]Replayed:[/] every file keeps its bytes, nothing was spent, no record was read.")
    show(store)


def write_people() -> None:
    """Writes the synthetic records, unless they are there."""
    population, admissions = FOLDER / "data" / "population.parquet", FOLDER / "data" / "admissions.parquet"
    if not population.exists() or not admissions.exists():
        console.print(f"Inventing {PERSONS:,} residents and the hospital visits of {PATIENTS:,} patients …")
        for write, path in ((write_population, population), (write_admissions, admissions)):
            draft = path.with_suffix(".draft")
            write(draft)
            draft.replace(path)  # whole or not at all, should this be interrupted


def open_store() -> Store:
    """The demo's store, with its two accounts and what they may read."""
    root = FOLDER / "store"
    if (root / "store.json").exists():
        return Store.open(root)
    store = Store.create(root)
    (root / "about.json").write_text(json.dumps({"publisher": PUBLISHER, "notice": NOTICE}), encoding="utf-8")
    ledger = store.ledger()
    operator, specs = Operator.load(), {path.name: ReleaseSpec.load(path / "defs.yaml") for path in SPECS.iterdir()}
    for release, terms in (
        ("population", Account("census", "row", "add_remove", Fraction(4), None, store.id)),
        ("weekly_admissions", Account("health", "patient_id", "add_remove", Fraction(26), "yearly", store.id)),
    ):
        ledger.open_account(terms, operator, specs[release].reading)
    return store


def release_everything() -> list[bool]:
    """Runs the job of each release, all of its periods in one run, as a backfill does; says which were replays."""
    gc.disable()  # what is loaded here stays, so looking through it again and again would be wasted

    import dagster as dg

    from dagster_project.definitions import defs

    definitions = defs()
    gc.freeze()
    atexit.register(gc.unfreeze)  # else DuckDB calls what is left at the end a leak
    gc.enable()
    replays = []
    ends = {"dagster/asset_partition_range_start": WEEK_KEYS[0], "dagster/asset_partition_range_end": WEEK_KEYS[-1]}
    work: list[tuple[str, dict[str, str]]] = [("population", {}), ("weekly_admissions", ends)]
    bars = (TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn())
    with dg.DagsterInstance.get() as instance, Progress(*bars, console=console) as progress:
        task = progress.add_task("starting", total=1 + len(WEEK_KEYS))
        for release, tags in work:
            progress.update(task, description=f"{release}, {len(WEEK_KEYS)} weeks" if tags else release)
            job = definitions.resolve_job_def(f"{release}_job")
            run = job.execute_in_process(tags=tags, instance=instance, run_config=QUIET, raise_on_error=False)
            if not run.success:
                progress.stop()
                sys.exit("\n".join(failures(run)))
            replays.append(was_replay(run))
            progress.advance(task, len(WEEK_KEYS) if tags else 1)
        progress.update(task, description="released through Dagster")
    return replays


def release_without_dagster() -> list[bool]:
    """The same releases by the function that `dphist release` runs; says which were replays."""
    specs = {
        release: ReleaseSpec.load(SPECS / release / "defs.yaml") for release in ("population", "weekly_admissions")
    }
    work = [("population", None), *(("weekly_admissions", week) for week in WEEK_KEYS)]
    return [verbs.release(specs[release], FOLDER / "store", week).replayed for release, week in work]


def revise_a_week() -> bool:
    """Publishes one week a second time, charged again, so that readers see a revision; says whether it was a replay."""
    spec = ReleaseSpec.load(SPECS / "weekly_admissions" / "defs.yaml")
    return verbs.release(spec, FOLDER / "store", REVISED, reason=WHY_REVISED).replayed


def failures(run: dg.ExecuteInProcessResult) -> list[str]:
    """What failed steps said.

    Args:
        run: over, whether it succeeded or not.
    """
    failed = [event for event in run.all_events if event.is_step_failure]
    return [str(event.step_failure_data.error_display_string) for event in failed]


def was_replay(run: dg.ExecuteInProcessResult) -> bool:
    """Whether the published asset says that it had been published before.

    Args:
        run: over; of one release, with any number of its periods.
    """
    shown = [event.materialization.metadata for event in run.get_asset_materialization_events()]
    return all(bool(metadata["replayed"].value) for metadata in shown if "replayed" in metadata)


def digests(store: Store) -> dict[str, str]:
    """SHA-256 of every published file, without the catalogue, which is built from them.

    Args:
        store: of the demo; nothing may be published yet.
    """
    files = sorted(path for path in store.public.glob("*/*/*/*") if path.is_file())
    return {str(path.relative_to(store.public)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def show(store: Store) -> None:
    """Asks the catalogue in SQL, and says where everything is and what it cost.

    Args:
        store: where the releases of the demo are published.
    """
    # Sums are told by their unbiased estimates, which lie in the middle of their intervals.
    query = f"SELECT period, unbiased, ci_lower, ci_upper FROM {QUESTION}"
    catalogue = store.public / "catalog.duckdb"
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{catalogue}' AS r (READ_ONLY)")
        rows = connection.execute(query).fetchall()
        (cut,) = connection.execute(CUT).fetchall()
        total = connection.execute("SELECT unbiased, ci_lower, ci_upper FROM r.dph_total('r.population')").fetchall()[0]
    console.print("\nSurgical admissions, age 60 and over, at most 3 visits a patient and week:")
    told = [(period, f"{visits:,.0f}", f"{lower:,.0f} to {upper:,.0f}") for period, visits, lower, upper in rows]
    print_table(["week of", "visits", "95 % interval"], told)
    console.print(
        "Visits left out by that bound in the last week, of the first 5 of a patient: {:,.0f} to {:,.0f}".format(*cut)
    )
    console.print(
        f"The week of {REVISED} was published twice: the table has revision 2, and the card of revision 1 says so."
    )
    console.print("Residents: {:,.0f} (95 %: {:,.0f} to {:,.0f})".format(*total))
    console.print("\nWhat was spent, once and for all:")
    for account in store.ledger().accounts():
        statement = Statement.of(store.ledger(), account.name)
        per = " this year" if account.renews else ""
        console.print(
            f"  {account.name}: epsilon {as_text(statement.spent)} of {as_text(statement.total)}{per} "
            f"per {'person' if account.privacy_unit == 'row' else account.privacy_unit}"
        )
    console.print(f"\nPublished tables   {store.public.relative_to(PROJECT)}/<release>/period=…/revision=…/")
    console.print(f"Catalogue for SQL  {catalogue.relative_to(PROJECT)}")
    console.print("\nAsk it:   .venv/bin/dphist answer weekly_admissions --store demo/store")
    console.print("Check it: DPHIST_WITNESS=$PWD/demo/witness.sqlite .venv/bin/dphist ledger verify --store demo/store")
    console.print("See it:   make ui     (Dagster's page, with the runs of this demo)")
    console.print(
        f"Read it:  {(store.public / 'index.html').relative_to(PROJECT)}     (in a browser: all that is published)"
    )


if __name__ == "__main__":
    if date.today() < FIRST_DAY + timedelta(weeks=WEEKS + 1):
        sys.exit("This machine's clock is before March 2026: the demo's weeks are not over yet.")
    main()
