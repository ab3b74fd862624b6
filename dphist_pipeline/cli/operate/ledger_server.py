"""The commands `dphist ledger move`, `roles` and `upgrade`: a ledger on a PostgreSQL server."""

from __future__ import annotations

import re
from typing import Annotated

import typer
from rich.markup import escape

from dphist_pipeline.cli.operate import operators as _operators  # noqa: F401  their commands are of the same group
from dphist_pipeline.cli.operate import store as _store  # noqa: F401
from dphist_pipeline.cli.operate import waive as _waive  # noqa: F401
from dphist_pipeline.cli.operate.ledger import ledger_app
from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_json
from dphist_pipeline.ledger.permissions import DECISIONS
from dphist_pipeline.ledger.postgresql import PostgresDatabase, ledger_database
from dphist_pipeline.ledger.witness_file import WitnessFile, WitnessServer, witness_database
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.releasing.store_decisions import StoreDecisions

NOTES = ("approved", "rejected", "withdrawn")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
# Any user who may connect could hold the lock that every writer takes first.
_CONNECT = """\
DO $connect$ BEGIN
    EXECUTE format('REVOKE CONNECT ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO {charges}, {decides}', current_database());
END $connect$;"""
_LEDGER = """\
-- In the ledger's database, as the user who ran `dphist init`: the owner of its tables.
BEGIN;
{connect}
GRANT USAGE ON SCHEMA public TO {charges}, {decides};
GRANT SELECT, INSERT ON ledger_entry TO {charges}, {decides};
ALTER TABLE ledger_entry ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS read_by_all ON ledger_entry;  -- of an earlier version, which knew fewer kinds of entries
DROP POLICY IF EXISTS entered_by_who_charges ON ledger_entry;
DROP POLICY IF EXISTS entered_by_who_decides ON ledger_entry;
CREATE POLICY read_by_all ON ledger_entry FOR SELECT USING (true);
CREATE POLICY entered_by_who_charges ON ledger_entry FOR INSERT TO {charges}
    WITH CHECK (kind IN ({charging}));
CREATE POLICY entered_by_who_decides ON ledger_entry FOR INSERT TO {decides}
    WITH CHECK (kind IN ({deciding}));
COMMIT;"""
_WITNESS = """\
-- In the witness's database, as the user who ran `dphist init`: the owner of its tables.
BEGIN;
{connect}
GRANT USAGE ON SCHEMA public TO {charges}, {decides};
GRANT SELECT ON ALL TABLES IN SCHEMA public TO {charges}, {decides};
GRANT INSERT ON {witnessing} TO {charges}, {decides};
-- Only who decides may start a new generation of a store: it ends what others charged before.
GRANT INSERT ON generation TO {decides};
COMMIT;"""


@ledger_app.command()
def move(
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Of an empty database: postgresql://user@host/database.")
    ],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Moves the ledger to a PostgreSQL database, entry by entry.

    The old ledger takes no entry any more and says where the new one is.
    Where the command was cut short, the same one finishes it.
    """
    ledger = StoreDecisions.move_ledger(Store.open_named(store), address)
    _, entries, _ = ledger.head()
    if as_json:
        print_json({"ledger": ledger.id, "address": str(ledger.place), "entries": entries})
        return
    out.print(f"[green]✓[/] Moved: {entries} entries, every hash as it was. From now on, for all who use this store:")
    out.print(f"  export DPHIST_LEDGER={escape(address)}", soft_wrap=True)


@ledger_app.command()
def upgrade(
    witness: Annotated[bool, typer.Option("--witness", help="The witness on a server instead.")] = False,
    store: StoreOption = None,
) -> None:
    """Gives a ledger or a witness on a server the rules of this version.

    Run it once, as the owner of its tables, where `dphist doctor` says so.
    Entries stay as they are. Where an account asks for two signatures, one
    entry, signed with your operator's key, lists which decisions of an earlier
    version wait for the second one.
    """
    opened_store = Store.open_named(store)
    if witness:
        _upgrade_witness(witness_database(opened_store.witness_file))
        return
    database = ledger_database(opened_store.ledger_url)
    # Its entries are not read yet: rules can be upgraded before a malformed row is taken away, and after.
    if isinstance(database, PostgresDatabase):
        if database.has_former_rules():
            database.upgrade_rules()
            out.print("[green]✓[/] From now on the server refuses every entry that would break a rule of the ledger")
        else:
            out.print("[green]✓[/] The rules are those of this version already")
    numbers = StoreDecisions.of(opened_store).list_waiting()
    if numbers is not None:
        entries = ", ".join(f"entry {number}" for number in numbers) or "nothing"
        out.print(f"[green]✓[/] The ledger says now what waits for a second signature: {entries}")
    elif not isinstance(database, PostgresDatabase):
        out.print("The ledger is a file: nothing to upgrade.")


def _upgrade_witness(database: WitnessFile | WitnessServer) -> None:
    if isinstance(database, WitnessFile):
        out.print("The witness is a file: nothing to upgrade.")
    elif database.has_former_rules():
        database.upgrade_rules()
        out.print("[green]✓[/] From now on the server refuses every row that the program would not write")
    else:
        out.print("[green]✓[/] The rules are those of this version already")


@ledger_app.command()
def roles(
    charges: Annotated[str, typer.Option(metavar="USER", help="Who runs releases.")] = "dphist_charges",
    decides: Annotated[str, typer.Option(metavar="USER", help="Who opens, allows, raises, adopts.")] = "dphist_decides",
    witness: Annotated[bool, typer.Option("--witness", help="For the witness's database instead.")] = False,
) -> None:
    """Prints SQL that lets one database user charge, and another one decide.

    Both users must exist. Neither can change or delete an entry. Pipe it to
    psql as the owner of the tables; again after an upgrade that says so.
    """
    for name, option in ((charges, "--charges"), (decides, "--decides")):
        if not _NAME.fullmatch(name):
            raise typer.BadParameter("must be small letters, digits and _", param_hint=option)
    print(role_statements(charges, decides, witness))


def role_statements(charges: str, decides: str, witness: bool = False) -> str:
    """The statements that give two users of a server their rights, as text for psql.

    Names have small letters, digits and _. `witness`: for the database of the witness, not that of the ledger.
    """
    charging, deciding = ("charged", "published", "rendered", *NOTES), (*sorted(DECISIONS), *NOTES)
    kinds = {"charging": _quoted_words(charging), "deciding": _quoted_words(deciding)}
    kinds |= {"witnessing": ", ".join(WitnessServer.entered_by_runs)}
    kinds |= {"connect": _CONNECT.format(charges=charges, decides=decides)}
    return (_WITNESS if witness else _LEDGER).format(charges=charges, decides=decides, **kinds)


def _quoted_words(words: tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in words)
