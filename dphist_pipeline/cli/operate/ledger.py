"""The commands `dphist ledger …`: what an operator decides, and what became of it.

What a spec asks for is shown, and signed after a question in a terminal, or by its digest.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from rich.markup import escape

from dphist_pipeline.base.files import project_folder
from dphist_pipeline.base.reading import OPTIONS, Reading, option_of
from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import (
    advice_before_release,
    at_a_terminal,
    err,
    next_of_period,
    out,
    print_allowed,
    print_facts,
    print_json,
    print_lines,
    print_statement,
    print_warning,
    statement_facts,
)
from dphist_pipeline.ledger.decisions import EVERYWHERE, FOR_ALL, Decision
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.ledger.ledger import Account, Ledger, refuse_unexplained
from dphist_pipeline.ledger.limits import refuse_bad_share
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.releasing.store_decisions import StoreDecisions, asked_by_options

if TYPE_CHECKING:  # the model of specs takes as long as the ledger
    from dphist_pipeline.releasing.spec_decisions import SpecDecisions

ledger_app = typer.Typer(
    help="The operator's side: accounts of epsilon, what releases may read, what was spent.", no_args_is_help=True
)

AccountArgument = Annotated[str, typer.Argument(metavar="ACCOUNT")]
ReasonOption = Annotated[str, typer.Option(metavar="TEXT", help="Why; it stays in the ledger.")]

ForOption = Annotated[
    Path | None, typer.Option("--for", metavar="SPEC", help="Takes it all from a release's spec, shows it, and asks.")
]
YesOption = Annotated[
    str | None,
    typer.Option(metavar="DIGEST", help="With --for or --query: signs what was shown with this digest; does not ask."),
]


@dataclass(frozen=True)
class ReadingOptions:
    """The options of `open` and `allow` that name a source, and say how it is read.

    `ways`: as given, by the name that the field has in specs.
    """

    source: str | None
    also_of: list[str]
    ways: Mapping[str, Any]

    def reading(self, decisions: StoreDecisions, account: str, unit: str) -> Reading | None:
        """What an operator would allow for an account; None without a source."""
        if self.source is None:
            return None
        base = project_folder(Path.cwd())
        return decisions.reading(base, account, self.also_of, self.source, privacy_unit=unit.split(","), **self.ways)


SOURCE = typer.Option(metavar="FILES", help="Records that releases may read, written as in specs: 'data/*.parquet'.")
ALSO_OF = typer.Option(metavar="ACCOUNT", help="An account that the source belongs to as well.")


def with_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options that name a source and say how it is read; it has them as the parameter `read`."""
    shared: dict[str, Any] = {"source": Annotated[str | None, SOURCE]}
    defaults: dict[str, object] = {}
    for name, field in OPTIONS.items():
        metavar, text = field.metadata["help"]
        if isinstance(field.default, bool):
            shared[name] = Annotated[bool, typer.Option(option_of(name), help=text)]
        else:
            shared[name] = Annotated[str | None, typer.Option(metavar=metavar, help=text)]
        written = field.metadata["written"]
        defaults[name] = written(field.default) if written else None if field.default == () else field.default
    shared["also_of"] = Annotated[list[str] | None, ALSO_OF]
    hints = get_type_hints(command, include_extras=True) | shared

    @wraps(command)
    def run(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in shared}
        source, also_of = given.pop("source"), given.pop("also_of") or []
        ways = {name: _way_of(name, value) for name, value in given.items() if value != defaults[name]}
        command(read=ReadingOptions(source, also_of, ways), **arguments)

    own = {name: parameter for name, parameter in signature(command).parameters.items() if name != "read"}
    options = [each.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]) for name, each in own.items()]
    for name in shared:
        default = defaults.get(name)
        options.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[name]))
    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = hints
    return run


def _way_of(name: str, value: object) -> object:
    """What an option gives as a spec would hold it: a list of forms, a tab."""
    if isinstance(OPTIONS[name].default, tuple):
        return [form.strip() for form in str(value).split(",") if form.strip()]
    return "\t" if value == "\\t" else value


@ledger_app.command(name="open")
@with_reading_options
def open_account(
    total: Annotated[
        str,
        typer.Option(metavar="EPSILON", help="The most that all releases together may spend, as in 26 or 1/3."),
    ],
    read: ReadingOptions,
    account: Annotated[
        str | None, typer.Argument(metavar="ACCOUNT", help="Its name, as specs will use it; not needed with --for.")
    ] = None,
    for_spec: ForOption = None,
    yes: YesOption = None,
    privacy_unit: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Who is protected: the specs' privacy_unit, or `row`.")
    ] = None,
    neighbours: Annotated[str | None, typer.Option(metavar="RELATION", help="add_remove or substitute.")] = None,
    renews: Annotated[str | None, typer.Option(metavar="yearly", help="A fresh total each 1 January.")] = None,
    signatures: Annotated[
        int, typer.Option(min=1, max=2, help="How many operators must sign a later decision about it, or its records.")
    ] = 1,
    accounting: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="summed: every release counts against the total. individual: a unit pays for its own counted rows, "
            "and is not counted once its year is paid for.",
        ),
    ] = None,
    left_out: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Part of the total of an individual account, as in 1/20: pays in each release for the number of units "
            "that it is the first of the year to leave out.",
        ),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Opens an account, and says which records its releases may read.

    What it protects is fixed for good; only its total can be raised. More
    sources: `dphist ledger allow`. `--for SPEC` takes unit, neighbours,
    source, how it is read and code lists from a spec, shows them in words
    with a digest, and asks; a script signs what was shown by `--yes DIGEST`.
    """
    if renews not in (None, "yearly"):
        raise typer.BadParameter("an account renews `yearly` or not at all", param_hint="--renews")
    if accounting not in (None, "summed", "individual"):
        raise typer.BadParameter("must be summed or individual", param_hint="--accounting")
    terms_by_hand = {"--privacy-unit": privacy_unit, "--neighbours": neighbours}
    terms_by_hand |= {"--accounting": accounting, "--left-out": left_out}
    _refuse_mixed(for_spec, yes, read, terms_by_hand)
    if for_spec is not None:
        spec_terms = (_total(total), renews is not None, signatures, read.also_of)
        _open_for(for_spec, yes, account, spec_terms, store, as_json)
        return
    if account is None or privacy_unit is None or neighbours is None:
        needed = {"ACCOUNT": account, "--privacy-unit": privacy_unit, "--neighbours": neighbours}
        missing = ", ".join(name for name, value in needed.items() if value is None)
        raise typer.BadParameter("must be given, or --for SPEC, which says it", param_hint=missing)
    opened_store = Store.open_named(store)
    decisions = StoreDecisions.of(opened_store)
    ledger = decisions.ledger
    terms = (privacy_unit, _neighbours(neighbours), _total(total), "yearly" if renews else None, opened_store.id)
    new_account = Account(_account_name(account), *terms, signatures, accounting or "summed")  # type: ignore[arg-type]
    if left_out is not None:
        new_account = replace(new_account, left_out=exact_option(left_out, "--left-out"))
        refuse_bad_share(new_account)
    reading = read.reading(decisions, account, privacy_unit)
    with decisions.signing() as operator:
        ledger.open_account(new_account, operator, reading, read.also_of)
    print_statement(Statement.of(ledger, account), as_json)
    if reading is None and not as_json:
        out.print("Its releases can read nothing yet. Say what they may:")
        out.print(f"  dphist ledger allow {escape(account)} --source FILES")


@ledger_app.command()
@with_reading_options
def allow(
    read: ReadingOptions,
    account: Annotated[
        str | None,
        typer.Argument(metavar="ACCOUNT", help="Whose releases may read it; left out for what holds for all accounts."),
    ] = None,
    for_spec: ForOption = None,
    yes: YesOption = None,
    query: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The query of a spec, as this file is now: shows its text, and asks. Needs --reason."
        ),
    ] = None,
    code_lists: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A folder of public code lists, for all accounts.")
    ] = None,
    clock: Annotated[
        str | None,
        typer.Option(
            metavar="DAY", help="Says that this machine's clock is right, where a release doubts it. Needs --reason."
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="duckdb=MINOR", help="Another minor version of DuckDB than the tests had. Needs --reason."
        ),
    ] = None,
    spark: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="A server of Spark that may read and count for `engine: spark`: sc://HOST:PORT, '{{ env.NAME }}' for "
            "an address with a token, or `session` for that of the program that runs the release.",
        ),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(
            metavar="ASSET:CHECK",
            help="A check of an upstream asset that may hold releases back where it fails (`require: checks`): whether "
            "a period appears then depends on records. Needs --reason.",
        ),
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it stays in the ledger.")] = "",
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decides what releases may read: a source, a query, or public code lists.

    A source is allowed with the way it is read: another delimiter, quote or
    form of names makes other rows and other people of the same file. A server
    of Spark, alone or with a source, serves all sources of the account.
    `--for SPEC` takes source, how it is read and code lists from a spec,
    shows them in words with a digest, and asks; `--yes DIGEST` signs it.
    """
    others = {"--query": query, "--code-lists": code_lists, "--clock": clock, "--engine": engine, "--spark": spark}
    if query is None or for_spec is not None:
        _refuse_mixed(for_spec, yes, read, {**others, "--check": check, "--reason": reason or None})
    if for_spec is not None:
        _allow_for(for_spec, yes, account, read.also_of, store, as_json)
        return
    for_all = [name for name in (code_lists, clock, engine) if name is not None]
    subjects = [*for_all, *(name for name in (read.source, query, check) if name is not None)]
    if (
        len(subjects) > 1
        or (spark is None and not subjects)
        or (spark is not None and subjects not in ([], [read.source]))
    ):
        raise typer.BadParameter(
            "give one of --source, --query, --check, --code-lists, --clock and --engine; or --spark, alone or with "
            "--source"
        )
    if (account is None) != bool(for_all):
        raise typer.BadParameter(
            "--source, --query, --check and --spark are for an ACCOUNT, the others are for all of them"
        )
    opened_store = Store.open_named(store)
    if for_all:
        print_allowed(_allow_for_all(opened_store, code_lists, clock, engine, reason), as_json)
        return
    decisions, name = StoreDecisions.of(opened_store), str(account)
    reading = read.reading(decisions, name, decisions.ledger.account(name).privacy_unit)
    readings = [{"source": reading.facts()}] if reading is not None else []
    asked = asked_by_options(query=query, check=check, spark=spark)
    if query is not None and not as_json:
        refuse_unexplained(name, asked[0], reason)  # before a text is shown, which a terminal asks to sign
        _show_query(
            query, asked[0]["query"]["sha256"], yes, ["dphist", "ledger", "allow", name, *_where(store)], reason
        )
    for what in [*readings, *asked]:
        print_allowed(decisions.allow(name, what, reason, (read.also_of) if "source" in what else []), as_json)


@ledger_app.command()
def disallow(
    number: Annotated[int, typer.Argument(metavar="ENTRY", help="Its number, as `dphist ledger show` lists it.")],
    reason: ReasonOption,
    store: StoreOption = None,
) -> None:
    """Takes back what was allowed: no release reads by it any more.

    What was released stays, and replays stay free.
    """
    decisions = StoreDecisions.of(Store.open_named(store))
    ledger = decisions.ledger
    with decisions.signing() as operator:
        decision = ledger.disallow(number, reason, operator)
    if decision in ledger.decisions(decision.account):
        out.print("Entered, and not in force yet: another operator must sign it. Until then releases read by it.")
        return
    out.print(f"[green]✓[/] No longer allowed: {decision.kind} {escape(decision.name)}")


@ledger_app.command(name="raise")
def raise_total(
    account: AccountArgument,
    total: Annotated[str, typer.Option(metavar="EPSILON", help="The new total, larger than the old one.")],
    reason: ReasonOption,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Raises an account's total, and keeps the reason."""
    decisions = StoreDecisions.of(Store.open_named(store))
    ledger = decisions.ledger
    with decisions.signing() as operator:
        ledger.raise_total(account, _total(total), reason, operator)
    print_statement(Statement.of(ledger, account), as_json)


@ledger_app.command()
def show(
    account: Annotated[
        str | None, typer.Argument(metavar="ACCOUNT", help="Only this account, with its charges.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Shows what accounts hold and may read, and what was spent on which release."""
    ledger = Store.open_named(store).ledger()
    statements = [
        Statement.of(ledger, name) for name in ([account] if account else [known.name for known in ledger.accounts()])
    ]
    if as_json:
        print_json([statement_facts(statement) for statement in statements])
        return
    if not statements:
        out.print("No account is open yet. Open one: dphist ledger open --help")
    for statement in statements:
        print_statement(statement, as_json=False)
    if account is None:
        names = {
            kind: [decision.name for decision in ledger.decisions(EVERYWHERE) if decision.kind == kind]
            for kind in FOR_ALL
        }
        waiting = ledger.books().permissions.waiting_of(EVERYWHERE)
        print_facts(
            {
                "operators": ", ".join(ledger.operators().values()) or "none yet; the first decision names one",
                "code lists": ", ".join(names["code_lists"]) or "no folder is declared public",
                **({"clock is right": ", ".join(names["clock"])} if names["clock"] else {}),
                **({"waived": ", ".join(names["waiver"])} if names["waiver"] else {}),
                **({"versions": ", ".join(names["version"])} if names["version"] else {}),
                **({"to be signed": ", ".join(f"entry {number}" for number in waiting)} if waiting else {}),
            }
        )


@ledger_app.command()
def verify(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Reads the whole ledger again, every hash, signature and sum, and compares it.

    Compares it with every published file, and with the witness. Exit code 1 where
    something is wrong, or where the witness is missing: without it nobody can say
    whether the ledger's end was cut off.
    """
    opened_store = Store.open_named(store)
    entries, whole, missing = opened_store.verify()
    witnessed = opened_store.confirm_witness(entries, whole)
    if as_json:
        facts = {"entries": entries, "publications": whole, "missing": missing, "witnessed": witnessed}
        print_json({**facts, "ledger": opened_store.ledger_id})
        return
    publications = "1 publication is" if whole == 1 else f"{whole} publications are"
    out.print(f"[green]✓[/] {entries} entries, every hash and every sum holds; {publications} whole")
    if not witnessed:
        out.print("  no witness yet: the first decision of an operator brings one")
    for place in missing:
        out.print(f"  published once, and not in the public folder now: {escape(place)}")


def allow_code_lists(store: Store, folder: Path) -> Decision | None:
    """Declares a folder of code lists public: any release may read its files. None waits for a second signature."""
    decisions = StoreDecisions.of(store)
    return decisions.allow(EVERYWHERE, decisions.code_lists(folder))


def _allow_for_all(
    store: Store, code_lists: Path | None, clock: str | None, engine: str | None, reason: str
) -> Decision | None:
    if code_lists is not None:
        return allow_code_lists(store, code_lists)
    (fact,) = asked_by_options(clock=clock, engine=engine)
    return StoreDecisions.of(store).allow(EVERYWHERE, fact, reason)


def _refuse_mixed(for_spec: Path | None, yes: str | None, read: ReadingOptions, others: Mapping[str, object]) -> None:
    """Refuses options beside `--for` that the spec stands for, and `--yes` without it."""
    if for_spec is None and yes is not None:
        raise typer.BadParameter("goes together with --for SPEC only", param_hint="--yes")
    given = {"--source": read.source, **{option_of(name): value for name, value in read.ways.items()}, **others}
    if for_spec is not None and (mixed := [name for name, value in given.items() if value is not None]):
        raise typer.BadParameter(f"says these already; leave out {', '.join(mixed)}", param_hint="--for")


def _show_query(query: Path, sha256: str, yes: str | None, command: list[str], reason: str) -> None:
    """Shows the text of a query before it is signed: at a terminal it asks, elsewhere the command has said so.

    `yes`: the digest that was shown before, of which nothing is asked. `command`: would sign it.
    """
    from dphist_pipeline.releasing.spec_decisions import DIGITS, not_signed, signed_another

    content = query.read_bytes()
    digest = sha256[:DIGITS]
    if hashlib.sha256(content).hexdigest() != sha256 or yes not in (None, digest):
        raise signed_another(yes or digest, hashlib.sha256(content).hexdigest()[:DIGITS])
    # A sign that a terminal would obey, or hide, is shown by its number.
    shown = (sign if sign.isprintable() or sign in "\n\t" else f"\\u{ord(sign):04x}" for sign in content.decode())
    out.print(f"For {escape(str(query))} you sign this text:\n\n{escape(''.join(shown).strip())}\n")
    print_facts(
        {
            "errors": "an item that raises is null for its row, where it looks at that row alone; anything else that "
            "raises fails the release",
            "digest": digest,
        }
    )
    if yes is None and at_a_terminal() and not typer.confirm("Sign this?", default=False):
        raise not_signed(digest, shlex.join([*command, "--query", str(query), "--reason", reason]))


def _open_for(
    spec: Path,
    yes: str | None,
    account: str | None,
    terms: tuple[Fraction, bool, int, list[str]],
    store: Path | None,
    as_json: bool,
) -> None:
    """Opens the account of a spec: `terms` are the total, whether it renews, signatures and other accounts."""
    from dphist_pipeline.releasing.spec_decisions import SpecDecisions

    opened_store = Store.open_named(store)
    ledger, (total, renews, signatures, also_of) = opened_store.ledger(), terms
    decisions = SpecDecisions.to_open(spec, opened_store, ledger, account, total, renews, signatures, also_of)
    command = ["dphist", "ledger", "open", "--for", str(spec), "--total", as_text(total)]
    command += [*(["--renews", "yearly"] if renews else []), *(["--signatures", "2"] if signatures > 1 else [])]
    show_and_sign(decisions, spec, opened_store, ledger, yes, [*command, *_also(also_of), *_where(store)], as_json)


def _allow_for(
    spec: Path, yes: str | None, account: str | None, also_of: list[str], store: Path | None, as_json: bool
) -> None:
    from dphist_pipeline.releasing.spec_decisions import SpecDecisions

    opened_store = Store.open_named(store)
    ledger = opened_store.ledger()
    decisions = SpecDecisions.to_allow(spec, opened_store, ledger, account, also_of)
    command = ["dphist", "ledger", "allow", "--for", str(spec), *_also(also_of), *_where(store)]
    show_and_sign(decisions, spec, opened_store, ledger, yes, command, as_json)


def _also(accounts: list[str]) -> list[str]:
    return [word for name in accounts for word in ("--also-of", name)]


def _where(store: Path | None) -> list[str]:
    return [] if store is None else ["--store", str(store)]


def _account_name(name: str) -> str:
    """Refuses what no spec can name: an account is there for good."""
    from dphist_pipeline.spec import fields

    try:
        return fields.name(name)
    except ValueError as error:
        problem = str(error)
    raise typer.BadParameter(problem, param_hint="ACCOUNT")


def _neighbours(word: str) -> str:
    spelled = {"add_or_remove_one": "add_remove", "replace_one": "substitute"}.get(word, word)
    if spelled not in ("add_remove", "substitute"):
        raise typer.BadParameter("must be add_remove or substitute", param_hint="--neighbours")
    return spelled


def _total(text: str) -> Fraction:
    return exact_option(text, "--total")


def exact_option(text: str, option: str) -> Fraction:
    """The number in an option, by its decimal digits: '0.5' or '1/3'.

    Raises:
        typer.BadParameter: it is no number.
    """
    from dphist_pipeline.spec.fields import exact

    try:
        return exact(text)
    except ValueError as error:
        problem = str(error)
    raise typer.BadParameter(problem, param_hint=option)


def show_and_sign(
    decisions: SpecDecisions,
    path: Path,
    store: Store,
    ledger: Ledger,
    yes: str | None,
    command: list[str],
    as_json: bool,
) -> None:
    """Shows the decisions of a spec, and enters them once an operator said yes to exactly these.

    `yes`: the digest that was shown before; None asks here. `command`: would sign them, without `--yes`.
    """
    from dphist_pipeline.workbench.planning.unit_names import doubt_of_axes

    if decisions.nothing:
        if as_json:
            print_json({"signed": False, **decisions.facts})
        else:
            out.print(f"[green]✓[/] All that {escape(str(path))} asks for was decided before; nothing was entered")
            _print_left_out(decisions)
        return
    digest = decisions.digest
    if yes is not None:
        decisions.refuse_another(yes)
    if not as_json:
        out.print(f"For {escape(str(path))} you sign:")
        print_facts({**decisions.words, "digest": digest})
        if doubt := doubt_of_axes(decisions.spec):
            print_warning(doubt)
    if yes is None:
        if as_json:
            print_json({"signed": False, "digest": digest, **decisions.facts})
            raise typer.Exit(1)
        if not at_a_terminal() or not typer.confirm("Sign this?", default=False):
            raise decisions.missing_signature(shlex.join(command))
    with StoreDecisions(store, ledger).signing() as operator:
        signed = decisions.sign(ledger, operator)
    _keep_signed_spec(decisions, store)
    if as_json:
        print_json({"signed": True, "digest": digest, **decisions.facts})
        return
    for decision in signed:
        print_allowed(decision, as_json)
    print_statement(Statement.of(ledger, decisions.spec.account), as_json)
    _print_left_out(decisions)
    argument = shlex.quote(str(path))
    print_lines(
        [
            "Next:",
            *(f"  {command}" for command in (f"dphist check {argument}", *next_of_period(decisions.spec, argument))),
        ]
    )
    print_lines([advice_before_release(decisions.spec)])


def _keep_signed_spec(decisions: SpecDecisions, store: Store) -> None:
    """Keeps the spec that was signed; the decision stands all the same where this user may not write to the store."""
    try:
        decisions.keep(store)
    except OSError as error:
        err.print(
            f"[yellow]![/] The decision stands. The spec was not kept in the store ({escape(str(error.strerror))}): "
            "its first release will not be able to say what changed since"
        )


def _print_left_out(decisions: SpecDecisions) -> None:
    if commands := decisions.left_out:
        out.print("The spec needs more, which is decided alone, with its reason:")
        print_lines(f"  {command}" for command in commands)
