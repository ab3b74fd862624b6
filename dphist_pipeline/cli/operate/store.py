"""The commands `dphist store …` and `dphist ledger report`: a store as a whole, its copy in a bucket, its pages."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from dphist_pipeline.cli.operate.ledger import exact_option, ledger_app
from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_facts, print_json, print_lines, print_table, progress
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.releasing.store import FORM, Store
from dphist_pipeline.releasing.store_decisions import Adoption, StoreDecisions

SPECS = (".yaml", ".yml")
store_app = typer.Typer(
    help="A store as a whole: its copy in a bucket, and one put back from a backup.", no_args_is_help=True
)


@ledger_app.command()
def report(
    year: Annotated[int | None, typer.Option(metavar="YEAR", help="Only decisions and charges of this year.")] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it as an HTML page.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reports on all accounts, for a privacy officer.

    What was allowed by whom, what was spent and is left, what waits, was
    revised, rejected or withdrawn.
    """
    from dphist_pipeline.publishing.ledger_report import LedgerReport

    opened_store = Store.open_named(store)
    ledger_report = LedgerReport(opened_store.ledger(), year)
    facts = ledger_report.facts()
    if page is not None:
        page.write_text(ledger_report.page(opened_store.public), encoding="utf-8")
    if as_json:
        print_json(facts)
        return
    for account in facts["accounts"]:
        _print_account(account)
    if facts["general"]:
        out.print("[bold]The whole ledger[/]")
        _print_rows(DECIDED, facts["general"])
    if page is not None:
        out.print(f"[green]✓[/] Written: {escape(str(page))}")


DECIDED = {"entry": "entry", "when": "when (UTC)", "by": "who", "did": "decision", "what": "of what", "reason": "why"}
CHARGED = {
    **{"release": "release", "period": "period", "revision": "revision", "epsilon": "epsilon", "when": "charged"},
    **{"state": "state", "reason": "why again", "notes": "what was said"},
}


def _print_account(account: dict[str, Any]) -> None:
    yearly = " each calendar year" if account["renews"] else ""
    out.print(f"[bold]{escape(account['account'])}[/]")
    print_facts(
        {
            "protects": account["protects"],
            "spent": f"{account['total']}{yearly} for each unit; {account['individual']}"
            if "individual" in account
            else f"{account['spent']} of {account['total']}{yearly}; {account['left']} left",
            "reads": "; ".join(account["allowed"]) or "nothing yet",
        }
    )
    _print_rows(DECIDED, account["decisions"])
    _print_rows(CHARGED, account["charges"])
    out.print()


def _print_rows(columns: dict[str, str], records: list[dict[str, Any]]) -> None:
    if records:
        rows = [tuple(row[name] for name in columns) for row in records]
        lines = [tuple("; ".join(part) if isinstance(part, list) else str(part) for part in row) for row in rows]
        print_table(list(columns.values()), lines)


@store_app.command()
def adopt(
    reason: Annotated[str, typer.Option(metavar="TEXT", help="What happened; it stays in the ledger.")],
    spent_elsewhere: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ACCOUNT=EPSILON",
            help="What was spent that neither ledger nor witness holds. Needed for every account where the witness is "
            "gone; 0 if nothing was.",
        ),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Goes on with a store that was put back from a backup, or whose witness is gone.

    What the witness holds counts as spent and is never drawn again, also where
    somebody entered it by hand. Other copies of the store draw nothing from
    then on. Look first whether a newer ledger can be put back: its decisions
    are lost otherwise. Where an account asks for two signatures, another
    operator signs what denies a row of the witness, or begins an empty one.
    """
    opened_store = Store.open_named(store)
    stated = list(map(_elsewhere, spent_elsewhere or []))
    elsewhere = dict(stated)
    if len(elsewhere) < len(stated):
        raise typer.BadParameter("names an account twice; give its sum once", param_hint="--spent-elsewhere")
    adoption, entry = StoreDecisions.adopt(opened_store, reason, elsewhere)
    waits = entry.number if adoption.ledger.waiting(entry.number) else None
    titles = [charge.title for charge in adoption.carried]
    if as_json:
        print_json(
            {
                "store": str(opened_store.root),
                "generation": adoption.generation,
                "carried": titles,
                "waits": waits,
            }
        )
        return
    if waits is None:
        done = f"Adopted: generation {adoption.generation} of this store; other copies of it draw nothing any more"
        out.print(f"[green]✓[/] {done}")
        print_adopted(adoption)
        return
    out.print(f"Entered, and not in force yet: another operator must sign it: dphist ledger sign {waits}")
    out.print("  It lapses if anything is charged or adopted before that.")


def print_adopted(adoption: Adoption) -> None:
    """Prints what an adoption carried over, and how an operator who knows that nothing was drawn gives that back."""
    for charge in adoption.carried:
        out.print(f"  counts as spent, and is never drawn again: {escape(charge.title)}")
    totals = {account.name: account.total for account in adoption.ledger.accounts()}
    spent = {name: epsilon for name, epsilon in adoption.spent().items() if name in totals}
    if spent:
        out.print("An operator who knows that nothing was drawn for them gives their price back:")
    for name, epsilon in spent.items():
        out.print(
            f"  dphist ledger raise {name} --total {as_text(totals[name] + epsilon)} --reason TEXT", soft_wrap=True
        )


def _elsewhere(option: str) -> tuple[str, Fraction]:
    account, equals, amount = option.partition("=")
    if not equals:
        raise typer.BadParameter("takes ACCOUNT=EPSILON, such as health=0.5", param_hint="--spent-elsewhere")
    return account, exact_option(amount, "--spent-elsewhere")


@store_app.command()
def publish(
    everything: Annotated[bool, typer.Option("--all", help="Send every file, whatever was sent before.")] = False,
    to: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Send to this bucket from now on: s3://bucket/prefix, gs:// or az://."),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Sends to the bucket of `dphist init --public`, or --to, what it lacks.

    `dphist release` does so by itself; this finishes what was cut short or
    failed. A bucket is written and never read: a public folder that was lost
    is put back from a backup or a copy, or made anew by the same `dphist
    release`. Spends nothing and reads no record.
    """
    from dphist_pipeline.releasing.public_folder import PublicFolder

    public = PublicFolder(Store.open_named(store))
    address_before = public.store.public_address
    if to is not None:
        public = public.copying_to(to)
    with progress(as_json) as step:
        copied = public.copy(step, everything)
    if as_json:
        print_json(vars(copied))
    else:
        done = f"sent {len(copied.sent):,} files to" if copied.sent else "nothing to send to"
        out.print(f"[green]✓[/] {done} {escape(copied.address)}")
        if address_before not in (None, public.store.public_address):
            out.print(f"  {escape(str(address_before))} stays as it is, and gets nothing more")
        print_lines([f"  left out, not what the ledger recorded: {place}" for place in copied.left_out])
    if copied.left_out:
        raise typer.Exit(1)


@store_app.command()
def upgrade(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Brings a store of version 0.2 or earlier to the form of this version.

    Where several hosts have the store, install this version on all of them
    first: earlier versions refuse it from then on. Until then this version
    reads it, and publishes and withdraws nothing. Run it on every host. Spends
    nothing and reads no record.
    """
    from dphist_pipeline.releasing.public_folder import PublicFolder

    public = PublicFolder(Store.open_named(store))
    with progress(as_json) as step:
        gone, deleted = public.upgrade(step)
    if as_json:
        print_json({"store": str(public.store.root), "was": public.store.form, "form": FORM, "gone": gone})
    else:
        out.print(f"[green]✓[/] The store has form {FORM}; earlier versions refuse it")
        print_lines([f"  deleted, for this version makes no such file: {path}" for path in deleted])


@store_app.command()
def pages(
    release: Annotated[
        str | None,
        typer.Argument(
            metavar="[RELEASE|SPEC]",
            help="Only the pages of this release; by its spec, with the `figures` that the file declares now.",
        ),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Writes all cards that are outdated, and the catalogue, with this version.

    Run it after an upgrade that corrected what pages say, after a change of
    about.json, or where `dphist doctor` names a page. A store does not know
    where specs lie: name the SPEC whose `figures` changed, for those of all
    periods; else they are computed as declared last. Cards are made from the
    published files, which stay as they are. Spends nothing and reads no
    record. A page that this version would write again stays.
    """
    from dphist_pipeline.releasing.declared_figures import keep_figures, refuse_untold_figures
    from dphist_pipeline.releasing.public_folder import PublicFolder
    from dphist_pipeline.releasing.spec_check import load_spec

    opened = Store.open_named(store)
    if release is not None and release.partition("#")[0].endswith(SPECS):
        spec = load_spec(release, opened)
        refuse_untold_figures(spec)
        keep_figures(opened, spec)
        release = spec.release
    with progress(as_json) as step:
        done = PublicFolder(opened).render(release, step)
    if as_json:
        print_json(vars(done))
    else:
        anew, same = len(done.anew), len(done.same)
        were = f"; those of {same:,} were as this version writes them" if same else ""
        out.print(
            f"[green]✓[/] pages of {f'{anew:,}' if anew else 'no'} publication{'s' if anew > 1 else ''} rendered anew"
            f"{were}. The catalogue is built anew"
        )
        print_lines([f"  left as they are: {place}: {reason}" for place, reason in done.left.items()])
    if done.left:
        raise typer.Exit(1)
