"""The command `dphist init`: makes a store."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dphist_pipeline.cli.operate.ledger import allow_code_lists
from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_json
from dphist_pipeline.ledger.signing import key_path
from dphist_pipeline.ledger.witness import Witness
from dphist_pipeline.releasing.store import Key, Store


def init(
    store: StoreOption = None,
    code_lists: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="A folder of public code lists, which specs may use. Repeat for more."),
    ] = None,
    public: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="A bucket to copy what is published to: s3://bucket/prefix, gs:// or az://. Keys: in the environment.",
        ),
    ] = None,
    join: Annotated[
        bool,
        typer.Option(
            "--join", help="Another machine has the store: DPHIST_LEDGER and DPHIST_WITNESS name what it uses."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Makes a store: a public folder, a confidential one, and a ledger.

    The user who runs this is the ledger's operator. Decisions are signed
    with a key in the user's configuration, which is made if missing. The
    public folder is empty: catalogue and pages come with the first
    release, or at once with a bucket, which is tried thereby.
    """
    if public is not None:
        from dphist_pipeline.publishing.bucket_sync import check_address

        public = check_address(public)
    root = Store.folder(store)
    new_store = Store.join(root, public) if join else Store.create(root, public)
    for folder in code_lists or []:
        allow_code_lists(new_store, folder)
    if public:  # a bucket that refuses is told now, not by the first release
        from dphist_pipeline.answering.building import CatalogueNotBuilt
        from dphist_pipeline.releasing.public_folder import PublicFolder

        with suppress(CatalogueNotBuilt):
            PublicFolder(new_store).refresh(Key("empty", "all", 1))
    if as_json:
        facts = {"store": str(new_store.root), "id": new_store.id, "ledger": new_store.ledger_id}
        print_json(facts | ({"public": public} if public else {}))
        return
    if join:
        out.print(f"[green]Made a store[/] at {escape(str(new_store.root))}, of one that other hosts have, too")
        own = new_store.own_folder().id
        out.print(f"  charges of this host are drawn in its own confidential folder alone, {own:.12}")
        return
    out.print(f"[green]Made a store[/] at {escape(str(new_store.root))}")
    if public:
        out.print(f"  what is published goes to {escape(public)}, too; keys come from the environment")
    out.print(f"  decisions are signed with {escape(str(key_path()))}; keep it from those who write specs")
    out.print(f"  charges are witnessed in {escape(Witness.at().where)}; keep it apart from the store's backups")
    out.print("Next, open an account for a release's spec, which says who is protected and what is read:")
    out.print("  dphist ledger open --for SPEC --total 26")
    out.print("or say so yourself, for example:")
    out.print("  dphist ledger open health --privacy-unit patient_id --neighbours add_remove --total 26 \\")
    out.print("    --source 'data/admissions/*.parquet'")
