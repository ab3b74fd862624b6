"""Prints facts, tables, progress and JSON for the commands.

In a table no number and no name breaks; columns without room beside the others stand below. Only words of sentences go
on in the next line.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from shutil import which
from time import monotonic
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from dphist_pipeline.ledger.epsilon_text import as_text

# Help and usage errors need none of these, and their imports take longer than everything else.
if TYPE_CHECKING:
    from dphist_pipeline.ledger.decisions import Decision
    from dphist_pipeline.ledger.entries import Note
    from dphist_pipeline.publishing.statements import Statement
    from dphist_pipeline.releasing.release_spec import ReleaseSpec


SECONDS_WITHOUT_LINES = 2.0  # whatever ends within them needs no list of its steps

# Lines are never cut or wrapped, so that paths and commands can be copied.
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def per_period(spec: ReleaseSpec) -> str:
    """The unit of time of a release: its period, or `release` if it has no periods."""
    return "release" if spec.period == "none" else spec.period


def next_of_period(spec: ReleaseSpec, spec_argument: str) -> list[str]:
    """The commands that look at the latest finished period of a release and publish it, for a shell."""
    day = "" if spec.period == "none" else f" --period {spec.latest_period(datetime.now(UTC)).key}"
    return [f"dphist look {spec_argument}{day}", f"dphist release {spec_argument}{day}"]


def advice_before_release(spec: ReleaseSpec) -> str:
    """Why to look before a first release, and which period the commands of `next_of_period` name."""
    other = "" if spec.period == "none" else " The period is the latest finished one; name another by its first day."
    return (
        "`look` shows an operator whether dates and values are read as meant, before anything is paid; every later "
        f"card of the account says that you looked.{other}"
    )


def promise(spec: ReleaseSpec) -> str:
    """The privacy unit, bound, neighbours and sensitivity of a spec in words."""
    if spec.privacy_unit == "row":
        return f"each row ({spec.neighbours})"
    rows = spec.bound_in_words
    bound = f"{rows} a {per_period(spec)} ({spec.neighbours})"
    return f"each {spec.privacy_unit} with up to {bound}: sensitivity {spec.sensitivity}"


def at_a_terminal() -> bool:
    """Whether somebody sits at a terminal who reads a question and answers it."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Prints each step on standard error when it begins, unless it is to be quiet."""
    if quiet:
        yield lambda step: None
        return
    with err.status("checking") as status:

        def step(name: str) -> None:
            err.print(f"  [dim]·[/] {escape(name)}")
            status.update(name)

        yield step


@contextmanager
def progress_bar(total: int, quiet: bool, lines: bool = False) -> Iterator[Callable[[str], None]]:
    """Shows a progress bar on standard error, if that is a terminal and it is not to be quiet.

    `lines`: also one line for each step, where they take more than some seconds: what is done, and what is begun.
    """
    from rich.progress import Progress

    hidden = quiet or not err.is_terminal
    with Progress(console=err, transient=True, disable=hidden) as bar:
        task, began = bar.add_task("", total=total), monotonic()
        begun, steps = 0, list[str]()

        def step(name: str) -> None:
            nonlocal begun
            bar.update(task, completed=begun, description=escape(name))
            begun += 1
            steps.append(name)
            if lines and not hidden and monotonic() - began > SECONDS_WITHOUT_LINES:
                for one in steps:
                    bar.console.print(f"  [dim]·[/] {escape(one)}")
                steps.clear()

        yield step


def print_release(
    audit: dict[str, Any],
    replayed: bool,
    path: Path,
    statement: Statement,
    charged: bool = True,
    copied_to: str | None = None,
    says: str = "",
) -> None:
    """Prints what was published, what it cost, and how to query it.

    `charged`: this command charged the account, unless it was a replay. `says`: what changed suddenly since the periods
    before; see `past_periods`.
    """
    from dphist_pipeline.answering.doubts import doubt_of_publication
    from dphist_pipeline.releasing.store import Store

    period = "" if audit["period"] == "all" else f", period {audit['period']}"
    done = "Already published" if replayed else "Published"
    out.print(f"[green]✓[/] {done}: {audit['release']}{period}, revision {audit['revision']}")
    price = "nothing now" if replayed or not charged else f"epsilon {as_text(Fraction(audit['epsilon']))}"
    print_facts(
        {
            "spent": f"{price}; account {statement.account.name} {_rest(statement)}",
            "files": str(path),
            **({"copied to": copied_to} if copied_to else {}),
        }
    )
    if doubt := doubt_of_publication(path, audit):
        out.print(f"[yellow]![/] {escape(doubt)}")
    if says:
        out.print(f"[yellow]![/] Compared with the periods before: {escape(says)}")
    root = path.parents[3]
    usual = Store.folder().resolve() == root.resolve()
    store = [] if usual else ["--store", _from_here(root)]
    day = [] if audit["period"] == "all" else ["--period", audit["period"]]
    # A family of tables is asked by its first table.
    name = "_".join([audit["release"], *list(audit.get("tables", {}))[:1]])
    command = ["dphist", "answer", name, *day, *store]
    query = ["duckdb", "-readonly", _from_here(path.parents[2] / "catalog.duckdb"), "-c", f"FROM {name}"]
    cells = ["dphist", "export", name, "--to", "csv", *day, *store]
    out.print(f"\nAsk it:       {escape(shlex.join(command))}")
    if which("duckdb") is not None:
        out.print(f"With DuckDB:  {escape(shlex.join(query))}")
    else:
        out.print(f"Every cell:   {escape(shlex.join(cells))}")


def _rest(statement: Statement) -> str:
    if statement.account.is_individual:
        return "lets each unit pay for its own rows: dphist ledger show"
    this_year = " this year" if statement.account.renews else ""
    return f"has {as_text(statement.left)} left of {as_text(statement.total)}{this_year}"


def _from_here(path: Path) -> str:
    working_folder = Path.cwd()
    return str(path.relative_to(working_folder) if path.is_relative_to(working_folder) else path)


def print_statement(statement: Statement, as_json: bool) -> None:
    """Prints the statement of an account."""
    if as_json:
        print_json(statement_facts(statement))
        return
    account = statement.account
    this_year = f" in {statement.year}" if account.renews else ""
    out.print(f"[bold]{escape(account.name)}[/]")
    print_facts(
        {
            "protects": f"{account.privacy_unit} ({account.neighbours})",
            "total": as_text(statement.total) + (" each calendar year" if account.renews else ""),
            **(
                {"accounting": "individual: each unit pays for its own rows", **statement.individual}
                if account.is_individual
                else {
                    "spent": as_text(statement.spent) + this_year,
                    "left": as_text(statement.left) + this_year,
                    **({"spent ever": as_text(statement.spent_ever)} if account.renews else {}),
                }
            ),
            **_read_by(statement),
        }
    )
    if statement.charges:
        key = ["release", "period", "revision"]
        several = len({charge.folder for charge in statement.charges}) > 1
        print_table(
            [*key, "epsilon", "charged", *(["host"] if several else []), "state", "reason"],
            [
                (
                    *(str(getattr(charge, name)) for name in key),
                    as_text(charge.epsilon),
                    charge.charged_at[:10],
                    *([charge.folder.host if charge.folder else ""] if several else []),
                    statement.states[charge.number],
                    "; ".join([*filter(None, [charge.reason]), *map(_text_of_note, statement.notes[charge.number])]),
                )
                for charge in statement.charges
            ],
            keys=len(key),
        )


def _read_by(statement: Statement) -> dict[str, str]:
    """The sources that an account may read, and the accounts that share its people."""
    facts = {}
    for kind, called in (("source", "reads"), ("query", "by query"), ("engine", "by Spark at")):
        decisions = [
            f"{statement.name_of_decision(decision)} (entry {decision.number})"
            for decision in statement.decisions
            if decision.kind == kind
        ]
        if decisions or kind == "source":
            facts[called] = ", ".join(decisions) or "nothing yet: dphist ledger allow"
    if statement.waiting:
        facts["to be signed"] = ", ".join(f"entry {number}" for number in statement.waiting)
    if statement.shared:
        spent = sum((other.spent for other in statement.shared), statement.spent)
        total = as_text(sum((other.total for other in statement.shared), statement.total))
        names = ", ".join(other.account.name for other in statement.shared)
        individual = any(one.account.is_individual for one in (statement, *statement.shared))
        together = f"at most {total}" if individual else f"{as_text(spent)} of {total}"
        facts["shared with"] = f"{names}: together {together} on the same people"
    return facts


def decision_facts(decision: Decision) -> dict[str, Any]:
    """A decision as JSON values."""
    facts: dict[str, Any] = {"entry": decision.number, "account": decision.account, "kind": decision.kind}
    facts |= {"name": decision.name, "at": decision.made_at, "by": list(decision.by), "reason": decision.reason}
    facts |= {"source": decision.reading.facts()} if decision.reading is not None else {}
    facts |= {"server": decision.server} if decision.server is not None else {}
    return facts | ({"also_of": list(decision.also_of)} if decision.also_of else {})


def print_allowed(decision: Decision | None, as_json: bool) -> None:
    """Says what was allowed, and for whom; a decision that is None waits for a second signature."""
    from dphist_pipeline.ledger.decisions import EVERYWHERE

    if decision is None:
        out.print("Entered, and not in force yet: another operator must sign it. See `dphist ledger show`.")
    elif as_json:
        print_json(decision_facts(decision))
    else:
        whom = "for all accounts" if decision.account == EVERYWHERE else f"for account {decision.account}"
        kind = {
            "engine": "engine spark at",
            "code_lists": "code lists in",
            "clock": "charges by the clock of",
            "check": "releases may be held back by the check",
        }
        called = kind.get(decision.kind, decision.kind)
        out.print(f"[green]✓[/] Allowed {whom}: {called} {escape(decision.name)} (entry {decision.number})")


def _text_of_note(note: Note) -> str:
    return f"approved by {note.text}" if note.kind == "approved" else f"{note.kind}: {note.text}"


def statement_facts(statement: Statement) -> dict[str, Any]:
    """The statement of an account as JSON values."""
    account = statement.account
    return {
        "account": account.name,
        "privacy_unit": account.privacy_unit,
        "neighbours": account.neighbours,
        "renews": account.renews,
        "total": str(statement.total),
        **(
            {"accounting": account.accounting, "left_out": str(account.left_out), "individual": statement.individual}
            if account.is_individual
            else {
                "spent": str(statement.spent),
                "spent_ever": str(statement.spent_ever),
                "left": str(statement.left),
            }
        ),
        "signatures": account.signatures,
        "decisions": list(map(decision_facts, statement.decisions)),
        "to_be_signed": statement.waiting,
        "shared_with": {
            other.account.name: {"spent": str(other.spent), "total": str(other.total)} for other in statement.shared
        },
        "charges": [
            {name: getattr(charge, name) for name in ("release", "period", "revision", "charged_at", "reason")}
            | {
                "epsilon": str(charge.epsilon),
                "state": statement.states[charge.number],
                "host": charge.folder.host if charge.folder else None,
                "folder": charge.folder.id if charge.folder else None,
                "notes": [
                    {"kind": note.kind, "text": note.text, "at": note.made_at}
                    for note in statement.notes[charge.number]
                ],
            }
            for charge in statement.charges
        ],
    }


def print_lines(lines: Iterable[str]) -> None:
    """Prints plain lines, without markup."""
    for line in lines:
        out.print(escape(line))


def print_warning(warning: str) -> None:
    """Prints a warning, without markup, beside what went well; nothing of an empty one."""
    if warning:
        out.print(f"[yellow]![/] {escape(warning)}")


def print_facts(facts: dict[str, str]) -> None:
    """Prints facts, one on each line, with aligned names."""
    width = max(map(len, facts))
    for name, fact in facts.items():
        out.print(f"  [dim]{name:<{width}}[/]  {escape(fact)}")


def print_table(header: list[str], rows: Iterable[tuple[str, ...]], keys: int = 1) -> None:
    """Prints aligned columns; see `table_lines` for what happens where the terminal is too narrow."""
    for number, (heads, lines) in enumerate(table_lines(header, list(rows), out.width, keys)):
        if number:
            out.print()
        for line in heads:
            out.print(Text(line, style="bold"))
        for line in lines:
            out.print(Text(line))


def print_tables(tables: Iterable[tuple[str, list[str], list[tuple[str, ...]]]]) -> None:
    """Prints tables: (title, header, rows)."""
    for title, header, rows in tables:
        out.print(f"\n[bold]{escape(title)}[/]")
        print_table(header, rows)


def print_json(content: Any) -> None:
    """Prints JSON on standard output."""
    sys.stdout.write(json.dumps(content, indent=2) + "\n")


GAP = "  "  # between two columns
_SIGNS = ("%", "±", "~", "!")


@dataclass(frozen=True)
class _Column:
    """A column with its head first, each text as its pieces that must not break, line by line."""

    texts: tuple[tuple[tuple[str, ...], ...], ...]

    @property
    def natural(self) -> int:
        """The width without any break."""
        return max(cell_len(" ".join(line)) for text in self.texts for line in text)

    @property
    def least(self) -> int:
        """The width of the longest piece."""
        return max((cell_len(piece) for text in self.texts for line in text for piece in line), default=0)


def table_lines(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int, keys: int = 1
) -> list[tuple[list[str], list[str]]]:
    """The lines of a table, in parts that stand below each other; the first `keys` columns stand in every part.

    For each part come the lines of its heads, and the lines of its rows, without blanks at their ends. If the terminal
    has no room for the name of a row and a number beside it, one part without heads.
    """
    columns = [_column([head, *(row[place] for row in rows)]) for place, head in enumerate(header)]
    name = sum(column.least + len(GAP) for column in columns[:keys])
    if name + max((column.least for column in columns[keys:]), default=0) > width:
        return [([], _one_by_one(header, rows, keys, width))]
    return [_table_lines([columns[place] for place in part], width) for part in _parts(columns, width, keys)]


def _one_by_one(header: Sequence[str], rows: Sequence[Sequence[str]], keys: int, width: int) -> list[str]:
    """A line for the name of each row, and below it one for each number: for the narrowest terminals."""
    heads = max(map(cell_len, header[keys:]), default=0)
    lines = []
    for row in rows:
        lines.append(" ".join(filter(None, (text.strip() for text in row[:keys]))))
        for head, text in zip(header[keys:], row[keys:], strict=True):
            start = f"{GAP}{head.strip():<{heads}}{GAP}"
            for part in _wrap_lines([_pieces(text.strip())], width - len(start)):
                lines.append(f"{start}{part}".rstrip())
                start = " " * len(start)
    return lines


def _column(texts: Sequence[str]) -> _Column:
    return _Column(tuple(tuple(_pieces(line) for line in text.split("\n")) for text in texts))


def _pieces(line: str) -> tuple[str, ...]:
    """A line in pieces; "± 2,996", "0 to under 20", "4.1 %" and "367 (348 to 386) ~" are one each.

    Blanks at its beginning, which align numbers, stay with the first piece.
    """
    words = line.split()
    pieces: list[str] = words[:1]
    for before, word, after in zip(words, words[1:], [*words[2:], ""], strict=False):
        goes_on = (word == "to" and (after == "under" or _has_digit(after))) or re.match(r"\([0-9−-]", word)
        of_number = _has_digit(before) and (word.startswith(_SIGNS) or goes_on)
        if of_number or (before, word) == ("to", "under") or (before in ("±", "to", "under") and _has_digit(word)):
            pieces[-1] = f"{pieces[-1]} {word}"
        else:
            pieces.append(word)
    start = line[: len(line) - len(line.lstrip())]
    return (start + pieces[0], *pieces[1:]) if pieces else ("",)


def _has_digit(word: str) -> bool:
    return any(sign.isdigit() for sign in word)


def _parts(columns: Sequence[_Column], width: int, keys: int) -> list[list[int]]:
    """The columns of each part, by their places; every part has one that is no key, if there is one."""
    keys_places = list(range(min(keys, len(columns))))
    keys_width = sum(columns[place].least + len(GAP) for place in keys_places)
    parts, rest = [list(keys_places)], width - keys_width + len(GAP)
    for place in range(len(keys_places), len(columns)):
        column_width = columns[place].least + len(GAP)
        if column_width > rest and len(parts[-1]) > len(keys_places):
            parts.append(list(keys_places))
            rest = width - keys_width + len(GAP)
        parts[-1].append(place)
        rest -= column_width
    return parts


def _table_lines(columns: Sequence[_Column], width: int) -> tuple[list[str], list[str]]:
    widths = _widths(columns, width - len(GAP) * (len(columns) - 1))
    heads: list[str] = []
    below: list[str] = []
    for place, row in enumerate(zip(*(column.texts for column in columns), strict=True)):
        lines = below if place else heads
        cells = [list(_wrap_lines(text, most)) for text, most in zip(row, widths, strict=True)]
        for number in range(max(map(len, cells))):
            parts = [cell[number] if number < len(cell) else "" for cell in cells]
            padded = [part + " " * (most - cell_len(part)) for part, most in zip(parts, widths, strict=True)]
            lines.append(GAP.join(padded).rstrip())
    return heads, below


def _widths(columns: Sequence[_Column], room: int) -> list[int]:
    """The least width of each column, and of what is left as much as it can use, an equal part for each."""
    widths = [column.least for column in columns]
    rest = max(0, room - sum(widths))
    wishes = sorted(range(len(columns)), key=lambda place: columns[place].natural - widths[place])
    for number, place in enumerate(wishes):
        more = min(columns[place].natural - widths[place], rest // (len(wishes) - number))
        widths[place] += more
        rest -= more
    return widths


def _wrap_lines(text: Sequence[Sequence[str]], most: int) -> Iterator[str]:
    for pieces in text:
        line = pieces[0]
        for piece in pieces[1:]:
            if cell_len(line) + 1 + cell_len(piece) > most:
                yield line
                line = piece
            else:
                line = f"{line} {piece}"
        yield line
