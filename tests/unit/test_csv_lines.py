"""Lines of CSV files, each judged alone, against a plain reading in Python."""

from __future__ import annotations

import gzip
import tempfile
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dphist_pipeline.base.reading import Reading
from dphist_pipeline.confidential.plan import SourcePlan
from dphist_pipeline.confidential.reading.ingest import opened_source
from dphist_pipeline.confidential.reading.source import SourceRefused
from dphist_pipeline.spec.sources import Source as Written
from examples import examples

LONGEST = 1 << 20
RFC, APOSTROPHE, NONE, ALL = '"', "'", "", "all"
Row = tuple[str | None, ...]


@cache
def fields_of(line: str, delimiter: str, quote: str) -> Row | None:
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
            Reading("", None, "csv", None, delimiter, quote, encoding, hive),  # type: ignore[arg-type]
            f"{folder}/**/*.{ending}",
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


def quoted_line(fields: list[str]) -> str:
    """A record as `csv.QUOTE_ALL` writes it."""
    return ",".join('"' + field.replace('"', '""') + '"' for field in fields) + "\n"


PARTS = st.lists(st.sampled_from(["\n", "\n", '"', '"', ",", ",", "p2", "\r\n", "\ufeff"]), max_size=9).map("".join)


@examples(150)
@given(texts=st.lists(PARTS, min_size=2, max_size=3), place=st.integers(0, 3))
@example(['x\n",",', "\ny"], 2)
@example(["x\n", ',",', "\ny"], 3)
def test_where_all_is_quoted_no_line_of_one_persons_text_is_somebody_elses(texts: list[str], place: int) -> None:
    place = min(place, len(texts))
    record = [*texts[:place], "p1", *texts[place:]]
    names = [f"column_{number}" for number in range(len(record))]
    rows, _ = plainly((quoted_line(names) + quoted_line(record)).encode(), ",", ALL)
    assert {row[place] for row in rows} <= {"p1", None}


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.zst"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_files_of_several_buffers_are_read_line_by_line(ending: str, end: str) -> None:
    odd = ['1,"2, and",3', '"1","2"" x",3', '1,"2,3', "1,2", "", '"', "x" * 70_000 + ",,1", "\ufeff1,2,3", "ä,😀,"]
    lines = [
        odd[number % len(odd)] if number % 7 == 0 else f"{number},some text,{number % 13}" for number in range(50_000)
    ]
    content = end.join(["a,b,c", *lines]).encode()
    assert len(content) > 40_000_000  # several buffers of DuckDB
    packed = gzip.compress(content, 1) if ending == "csv.gz" else content
    packed = pa.compress(content, "zstd", asbytes=True) if ending == "csv.zst" else packed
    rows, unreadable = plainly(content, ",", RFC)
    found, others = read({f"{number}.{ending}": packed for number in range(3)})
    assert others == 3 * unreadable
    assert found == sorted(3 * rows, key=repr)


def test_folders_that_name_columns_go_with_each_line() -> None:
    files = {f"line={number}/more=x/a.csv": b'a,b\n1,"2,"\n1\r,2\n' for number in range(5)}
    rows, unreadable = read(files, hive=True)
    assert rows == sorted([(*row, str(n), "x") for n in range(5) for row in (("1", "2,"), ("1\r", "2"))], key=repr)
    assert unreadable == 0


@pytest.mark.parametrize("encoding", ["windows-1252", "latin-1"])
def test_lines_in_other_encodings_are_read_alike(encoding: str) -> None:
    agrees('a,b\r\n"ä, ö",1\r\nü\r,2\r\n\0,3\r\n"ß,4\r\n'.encode(encoding), encoding=encoding)


def test_a_header_of_another_form_is_refused_and_one_with_fewer_names_reads_nothing() -> None:
    written_by_r = b'"ward" "patient"\n"1" "a" "p1"\n"2" "a" "p1"\n'  # of R's write.table
    assert read({"a.csv": written_by_r}, delimiter=" ") == ([], 2)
    for header, quote in ((b'"a,b\n', RFC), (b'a,b"\n', RFC), (b'"a","b"\n', NONE)):
        with pytest.raises(SourceRefused, match="no usable header line"):
            read({"a.csv": header + b"1,2\n"}, quote=quote)


def test_lines_of_a_mebibyte_and_more_move_no_other_line() -> None:
    for size in (LONGEST - 4, LONGEST, 3 * LONGEST):
        for more in (b"", b"\r", b"\xff"):
            content = b'a,b\n1,"2"\n"' + b"x" * size + more + b'",2\n3,4\n'
            rows, _ = read({"a.csv": content})
            assert [row for row in rows if len(row[0] or "") < 9] == [("1", "2"), ("3", "4")]
