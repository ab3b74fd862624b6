"""Lines of CSV files, each judged alone, against a plain reading in Python."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dphist_pipeline.confidential.plan import SourcePlan
from dphist_pipeline.confidential.reading.ingest import opened_source
from dphist_pipeline.spec.sources import Source as Written
from examples import examples

LONGEST = 1 << 20
RFC, APOSTROPHE, NONE, ALL = '"', "'", "", "all"
Row = tuple[str | None, ...]


def fields_of(line: str, delimiter: str, quote: str) -> Row | None:  # noqa: C901 - plain on purpose
    """The fields of a line, sign by sign; None if it is unreadable."""
    sign, fields, place = "'" if quote == APOSTROPHE else '"', list[str](), 0
    while True:
        text = ""
        if line[place : place + 1] == sign:
            if quote == NONE:
                return None
            place += 1
            while line[place : place + 1] != sign or line[place : place + 2] == 2 * sign:
                if place >= len(line):
                    return None
                place += 1 + (line[place] == sign)
                text += line[place - 1]
            place += 1
        elif quote == ALL:
            return None
        else:
            while place < len(line) and line[place] != delimiter:
                if line[place] == sign and quote != NONE:
                    return None
                text += line[place]
                place += 1
        fields.append(text)
        if place == len(line):
            nothing = {sign, delimiter} if quote == ALL else set[str]()
            return tuple(text if set(text) - nothing else None for text in fields)
        if line[place] != delimiter:
            return None
        place += 1


def lines_of(content: bytes, encoding: str = "utf-8") -> list[str]:
    """The lines of a file, the header first; empty ones are no lines."""
    text = content.decode(encoding)
    first = min((place for place in map(text.find, "\r\n") if place >= 0), default=0)
    if text[first:].lstrip("\r")[:1] != "\n" and text[first : first + 1] == "\r":
        lines = text.replace("\r", "\n").split("\n")
    else:
        lines = [line.rstrip("\r") for line in text.split("\n")]
    return [line for line in (line.lstrip("\ufeff") for line in lines) if line]


def plainly(content: bytes, delimiter: str, quote: str, encoding: str = "utf-8") -> tuple[list[Row], int]:
    """The rows of a file below its header line, and how many lines are unreadable."""
    header, *lines = lines_of(content, encoding)
    names = fields_of(header, delimiter, RFC if quote == ALL else quote)
    assert names is not None
    rows, unreadable = [], 0
    for line in lines:
        if quote == ALL and not set(line) - {'"', delimiter}:
            continue
        if len(line.encode()) > LONGEST:
            continue
        row = None if "\0" in line else fields_of(line, delimiter, quote)
        if row is None or len(row) != len(names):
            unreadable += 1
        else:
            rows.append(row)
    return rows, unreadable


def read(
    files: dict[str, bytes], delimiter: str = ",", quote: str = RFC, encoding: str = "utf-8", hive: bool = False
) -> tuple[list[Row], int]:
    """The rows of files as a release reads them, sorted, and how many lines are unreadable."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as run:
        for name, content in files.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_bytes(content)
        ending = next(iter(files)).partition(".")[2]
        plan = SourcePlan(
            Written(f"**/*.{ending}"),
            "csv",
            f"{folder}/**/*.{ending}",
            csv_delimiter=delimiter,
            csv_quote=quote,
            csv_encoding=encoding,  # type: ignore[arg-type]
            hive=hive,
        )
        with opened_source(plan, Path(run)) as (connection, source):
            rows = connection.execute(source.relation, dict(source.parameters)).fetchall()
            unreadable = connection.execute(source.unreadable, dict(source.parameters)).fetchall()
    return sorted(rows, key=repr), len(unreadable)


def agrees(content: bytes, delimiter: str = ",", quote: str = RFC, encoding: str = "utf-8") -> None:
    rows, unreadable = plainly(content, delimiter, quote, encoding)
    assert read({"a.csv": content}, delimiter, quote, encoding) == (sorted(rows, key=repr), unreadable)


@pytest.mark.parametrize("quote", [RFC, NONE, ALL])
@pytest.mark.parametrize(
    "line",
    [
        *(
            "1,2",
            '"1","2"',
            '"1, and",2',
            '"1"" and",2',
            '"1" ,2',
            '1"2,3',
            '"1"2,3',
            '"1\\",2",3',
            '"1,2',
            '"",""',
            ",",
        ),
        *(
            "1",
            "1,2,3",
            "",
            '""',
            '"',
            " ",
            "\0",
            "1\0,2",
            "1,\0\0",
            "1\r1,2",
            "1,2\r",
            "\ufeff1,2",
            '\ufeff"1","2"',
            "\ufeff",
        ),
        *(
            "\ufdd1,1",
            "\ufdd1a,\ufdd1b",
            "\ufdd1\r,\ufdd0",
            "ä,😀",
            '"","',
            '"",""","',
            "'1,1',2",
            ' "1","2"',
            "NULL,\\N",
            "#1,2",
        ),
    ],
)
def test_a_line_means_the_same_wherever_it_stands(line: str, quote: str) -> None:
    other = '"x","y"' if quote != NONE else "x,y"
    for end in ("\n", "\r\n", "\r\r\n"):
        for before, after in (("", ""), (other + end, end + other), (other + end, end)):
            agrees(f"a,b{end}{before}{line}{after}".encode(), quote=quote)


SIGNS = st.sampled_from(
    [*'aé😀 ";,\t|', '""', '","', '",', "\r", "\0", "\ufeff", "\ufdd0", "\ufdd1", "\ufdd1b", "'", "\\"]
)
TEXTS = st.lists(SIGNS, max_size=5).map("".join)
ENDS = st.sampled_from(["\n", "\n", "\r\n", "\n\n", "\r\r\n"])


@st.composite
def lines(draw: st.DrawFn, delimiter: str) -> str:
    """A line of any form, often with the right number of fields."""
    if draw(st.integers(0, 4)) == 0:
        return draw(TEXTS)
    count = draw(st.sampled_from([3, 3, 3, 3, 2, 4]))
    quoted = lambda text: '"' + text.replace('"', '""') + '"'  # noqa: E731
    return delimiter.join(draw(st.sampled_from([str, quoted, quoted]))(draw(TEXTS)) for _ in range(count))


@st.composite
def contents(draw: st.DrawFn) -> tuple[str, str]:
    delimiter = draw(st.sampled_from([",", ";", "\t", "|", "^"]))
    given_lines = draw(st.lists(st.tuples(lines(delimiter), ENDS), max_size=12))
    names = delimiter.join("abc")
    end = draw(st.sampled_from(["\n", "\r\n", "\r\r\n", "\r"]))
    body = "".join(line + ("\r" if end == "\r" else ending) for line, ending in given_lines)
    return delimiter, draw(st.sampled_from(["", "\ufeff"])) + names + end + body


@examples(150)
@given(content=contents(), quote=st.sampled_from([RFC, RFC, APOSTROPHE, NONE, ALL]))
@example((",", "a,b,c\n1,2\r,3\r"), RFC)
def test_generated_lines_are_read_as_plainly(content: tuple[str, str], quote: str) -> None:
    delimiter, text = content
    if text.removeprefix("\ufeff")[5:].startswith("\r") and text[6:7] == "\n":
        return  # the header's own end and an empty line
    agrees(text.encode(), delimiter, quote)
