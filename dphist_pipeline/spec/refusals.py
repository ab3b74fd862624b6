"""Errors of specs, and how places and values are written in messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from dphist_pipeline.errors import Refused

LONGEST_ECHO = 60
MOST_LINES = 40

Location = tuple[str | int, ...]


class SpecError(Refused):
    """A spec with mistakes: all that were found, each with its place and its mend.

    Attributes:
        problems: pairs of place (`attributes.axes[1].values[0]`, or line and column) and what is wrong there.
        file: the spec, where it came from a file.
        of_what: it is a spec.
    """

    def __init__(
        self, problems: Iterable[tuple[str, str]], file: Path | str | None = None, of_what: str = "release"
    ) -> None:
        self.problems = tuple(problems)
        self.file, self.of_what = file, of_what
        count = len(self.problems)
        title = f"{of_what} spec" if file is None else shortened(str(file), 300)
        lines = [f"{title}: {count} mistake{'s' if count != 1 else ''}, nothing was read or spent"]
        lines += [f"  {place}: {what}" if place else f"  {what}" for place, what in self.problems[:MOST_LINES]]
        if count > MOST_LINES:
            lines.append(f"  and {count - MOST_LINES} more; mend these first")
        super().__init__("\n".join(lines))


class PeriodError(Refused):
    """A period that does not exist, is not spelled as its first day, or is not over yet."""

    def __init__(self, key: object, problem: str) -> None:
        self.key, self.problem = key, problem
        super().__init__(f"period {shown(key)}: {problem}")


class MistakesError(ValueError):
    """Several mistakes below one field, found by one check. The renderer of messages takes it apart.

    Args:
        found: pairs of location below the field and message.
    """

    def __init__(self, found: Iterable[tuple[Location, str]]) -> None:
        self.found = tuple(found)
        super().__init__("; ".join(what for _, what in self.found))


class FromEnvironment(str):
    """Text with `{{ env.X }}` resolved. Messages show `written`, never the resolved value."""

    written: str

    def __new__(cls, value: str, written: str = "") -> FromEnvironment:
        text = super().__new__(cls, value)
        text.written = written
        return text


def shortened(text: str, longest: int = LONGEST_ECHO) -> str:
    """The text on one line, without control characters, cut to `longest` characters.

    Args:
        text: any; it may come out of a file that is no spec.
    """
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in cut)


def shown(value: object) -> str:
    """A value of the spec as a message may echo it: short, escaped, and never out of the environment."""
    if isinstance(value, FromEnvironment):
        return f"the value of {shortened(value.written)}"
    if isinstance(value, str):
        cut = value if len(value) <= LONGEST_ECHO else value[: LONGEST_ECHO - 1] + "…"
        return repr(cut)
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value) if abs(value) < 10**LONGEST_ECHO or value != value else "a very large number"
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple) else f"a {shortened(type(value).__name__)}"


def listed_words(name: str) -> frozenset[str]:
    """The words in a text file of this folder, whose lines that begin with # are comments.

    Args:
        name: of the file, without its ending .txt.
    """
    lines = Path(__file__).with_name(f"{name}.txt").read_text("utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def as_key(key: object) -> str:
    """A key of a mapping as text; the keys of a spec all are."""
    return key if isinstance(key, str) else shown(key)


def place(where: str, location: Location) -> str:
    """A location inside the spec as text: `attributes.axes[1].values[0]`.

    Args:
        where: what messages call the mapping, as `attributes`.
        location: keys and numbers of items from there, outermost first.
    """
    return where + "".join(map(_step, location))


def _step(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if re.fullmatch(r"[A-Za-z_]\w{0,59}", key, re.ASCII) else f"[{shown(key)}]"
