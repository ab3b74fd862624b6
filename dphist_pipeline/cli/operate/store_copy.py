"""The commands `dphist store publish`, `fetch` and `pages`: the public folder, its copy in a bucket, its pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dphist_pipeline.cli.operate.store import store_app
from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_json, print_lines, progress
from dphist_pipeline.releasing.store import Store


@store_app.command()
def publish(
    check: Annotated[
        bool, typer.Option("--check", help="Read every object, and send again what is missing or altered.")
    ] = False,
    drop: Annotated[
        bool, typer.Option("--drop", help="Take what the public folder does not have out of the bucket's manifest.")
    ] = False,
    to: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Publish to this bucket from now on: s3://bucket/prefix."),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Brings the bucket that `dphist init --public` or --to named up to date.

    `dphist release` does so by itself; this finishes what was cut short or
    failed. Nothing comes back from a bucket: a public folder that was lost is
    put back from a backup, or made anew by the same `dphist release`. Spends
    nothing and reads no record.
    """
    from dphist_pipeline.releasing.public_folder import PublicFolder

    public = PublicFolder(Store.named(store))
    before = public.store.public_address
    if to is not None:
        public = public.copying_to(to)
    with progress(as_json) as step:
        copied = public.copy(step, check, drop)
    if as_json:
        print_json(vars(copied))
        return
    done = f"sent {len(copied.sent):,} files to" if copied.sent else "nothing to send:"
    end = "" if copied.sent else " is up to date"
    out.print(f"[green]✓[/] {done} {escape(copied.address)}{end}")
    if before not in (None, public.store.public_address):
        out.print(f"  {escape(str(before))} stays as it is, and gets nothing more")
    print_lines([f"  no longer in its manifest: {place}" for place in copied.dropped])


@store_app.command()
def pages(
    release: Annotated[str | None, typer.Argument(metavar="[RELEASE]", help="Of this one only.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Renders cards and catalogue of what was published anew, with this version.

    Run it after an upgrade that corrected what pages say. Values, Parquet
    files and audits stay as they are; `pages.json` beside a card, and the
    ledger, hold the digests of the new pages. Spends nothing and reads no
    record. A page that this version would write again stays.
    """
    from dphist_pipeline.releasing.public_folder import PublicFolder

    public = PublicFolder(Store.named(store))
    with progress(as_json) as step:
        done = public.render(release, step)
    if as_json:
        print_json(vars(done))
    else:
        anew, same = len(done.anew), len(done.same)
        were = f"; those of {same:,} were as this version writes them" if same else ""
        out.print(
            f"[green]✓[/] pages of {f'{anew:,}' if anew else 'no'} publication{'s' if anew > 1 else ''} rendered anew"
            f"{were}. The catalogue is built anew"
        )
        print_lines([f"  left as they are: {place}: {why}" for place, why in done.left.items()])
    if done.left:
        raise typer.Exit(1)


@store_app.command()
def fetch(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Where somebody publishes: s3://bucket/prefix.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder, or one from an earlier fetch.")],
    as_json: JsonOption = False,
) -> None:
    """Fetches everything that is published in a bucket, and checks every file.

    Needs no store. The folder serves `dphist answer`, `plot`, `export` and
    their siblings as --store, and DuckDB as FOLDER/catalog.duckdb. Run it
    again to bring the folder up to date.
    """
    from dphist_pipeline.publishing.fetching import fetch as fetched_from

    fetched = fetched_from(address, folder)
    if as_json:
        print_json({**vars(fetched), "folder": str(fetched.folder)})
        return
    new = f"{fetched.downloaded:,} were new, {fetched.size / 1e6:,.1f} MB"
    out.print(f"[green]✓[/] {escape(str(fetched.folder))} has {fetched.files:,} files; {new}")
    out.print(f"\nAsk it:       dphist answer RELEASE --store {escape(str(fetched.folder))}")
    out.print(f"With DuckDB:  duckdb -readonly {escape(str(fetched.folder / 'catalog.duckdb'))} -c 'SHOW TABLES'")
