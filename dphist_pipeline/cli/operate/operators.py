"""The commands `dphist ledger key`, `add-key`, `rotate-key` and `sign`: who decides, and with which key."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer
from rich.markup import escape

from dphist_pipeline.cli.operate.ledger import ReasonOption, ledger_app
from dphist_pipeline.cli.operate.store import print_adopted
from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_json
from dphist_pipeline.ledger.signing import Operator, key_path
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.releasing.store_decisions import StoreDecisions


@ledger_app.command()
def key(as_json: JsonOption = False) -> None:
    """Shows the public half of your key, for another operator to add."""
    operator = Operator.load_or_make()
    if as_json:
        print_json({"public": operator.public, "private_file": str(key_path())})
        return
    out.print(operator.public)
    out.print(f"  the private half is {escape(str(key_path()))}", style="dim")


@ledger_app.command(name="add-key")
def add_key(
    public: Annotated[str, typer.Argument(metavar="KEY", help="As `dphist ledger key` shows it to its owner.")],
    name: Annotated[str, typer.Option(metavar="NAME", help="Whose it is; everybody who reads the ledger sees it.")],
    store: StoreOption = None,
) -> None:
    """Lets another operator decide as well.

    Where an account asks for two signatures, so does the third key.
    """
    decisions = StoreDecisions.of(Store.open_named(store))
    ledger = decisions.ledger
    with decisions.signing() as operator:
        decision = ledger.add_key(name, public, operator)
    if decision is not None:
        out.print(f"Entered, and not in force yet: another operator must sign it: dphist ledger sign {decision}")
        return
    out.print(f"[green]✓[/] Decides from now on: {', '.join(map(escape, ledger.operators().values()))}")


@ledger_app.command(name="rotate-key")
def rotate_key(
    reason: ReasonOption,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Your new private key, outside the store; made there if it is missing."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Another person's key, as `dphist ledger key` shows it to them.")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="With --key: whose it is.")] = None,
    store: StoreOption = None,
) -> None:
    """Puts a new key in the place of yours: the old one decides nothing more.

    It is signed with the old key. What that key decided stays in force. Run
    it once for every store in which you decide; the same again changes nothing.
    Another person's key needs no second signature, even where an account asks
    for two: it counts as yours, and the two never give both signatures.
    """
    if (to is None) == (key is None) or (key is None) != (name is None):
        raise typer.BadParameter("give --to FILE for a new key of yours, or --key KEY --name NAME of another person")
    opened_store = Store.open_named(store)
    decisions = StoreDecisions.of(opened_store)
    ledger = decisions.ledger
    operators, new = ledger.operators(), None if to is None else _new_key(to, opened_store.root)
    if new is None or new.public not in operators:
        with decisions.signing() as operator:
            operators = operators or {operator.public: operator.name}
            taker = str(name) if new is None else operators.get(operator.public, operator.name)
            ledger.rotate_key(taker, str(key) if new is None else new.public, reason, operator)
    out.print(f"[green]✓[/] Decides from now on: {', '.join(map(escape, ledger.operators().values()))}")
    if key is not None:
        out.print(f"  {escape(str(name))} signs in your place: both keys count as one operator, and give one signature")
    if to is not None:
        out.print(
            f"  decide with it:                      export DPHIST_OPERATOR_KEY={escape(quote(str(to.absolute())))}"
        )
        command = f"mv {quote(str(to))} {quote(str(key_path()))}"
        out.print(f"  once every store of yours knows it:  {escape(command)}")


def _new_key(path: Path, store: Path) -> Operator:
    """The key that takes the place of the operator's own; not in the store, which people copy."""
    if path.resolve().is_relative_to(store.resolve()):
        raise typer.BadParameter("lies inside the store, and would be copied with it", param_hint="--to")
    if path.resolve() == key_path().resolve():
        raise typer.BadParameter("is the key that you decide with; name a new file beside it", param_hint="--to")
    return Operator.load_or_make(path)


@ledger_app.command()
def sign(
    number: Annotated[int, typer.Argument(metavar="ENTRY", help="Number of the decision that waits for you.")],
    store: StoreOption = None,
) -> None:
    """Gives a decision its second signature, where an account asks for two."""
    adoption = StoreDecisions.sign(Store.open_named(store), number)
    out.print(f"[green]✓[/] Entry {number} is signed, and in force")
    if adoption is not None:
        print_adopted(adoption)
