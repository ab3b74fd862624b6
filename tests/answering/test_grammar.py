"""The small grammar of `--where`: what each condition means, and that nothing else gets through."""

from __future__ import annotations

import re
import time
from contextlib import suppress

import pytest
from error_codes import coded
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.answering.grammar import LONGEST, parse_where
from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates.chosen_cells import Condition
from examples import examples

MEANINGS: dict[str, dict[str, Condition]] = {
    "age in [60, 80)": {"age": (60.0, 80.0)},
    "age in[60,80)and ward='surgery'": {"age": (60.0, 80.0), "ward": "surgery"},
    "  age\n>=\t60  ": {"age": (60.0, None)},
    "age < -5.5e1": {"age": (None, -55.0)},
    "age >= 60 and age < 80": {"age": (60.0, 80.0)},
    "age < 80 AND age >= .5": {"age": (0.5, 80.0)},
    "ward = surgery": {"ward": "surgery"},
    "ward == surgery": {"ward": "surgery"},
    "ward = 'day care, ''B'' and more'": {"ward": "day care, 'B' and more"},
    "ward = ''": {"ward": ""},
    "ward = Other": {"ward": "Other"},
    "ward = And and side = Is": {"ward": "And", "side": "Is"},
    "ward IN ('a', b, 3)": {"ward": ["a", "b", "3"]},
    "ward Is OTHER": {"ward": None},
    "other = x and age is other": {"other": "x", "age": None},
    "ward != a": {"ward": {"not": ["a"]}},
    "ward <> 'a' and age >= 1 and ward != b": {"ward": {"not": ["a", "b"]}, "age": (1.0, None)},
    "ward is not other": {"ward": {"not": [None]}},
    "ward = a or ward = b": {"ward": ["a", "b"]},
    "ward = a OR ward in (b, c) or ward is other": {"ward": ["a", "b", "c", None]},
    "(ward = a)": {"ward": "a"},
    "age >= 60 and (ward = a or ward = b) and side = l": {"age": (60.0, None), "ward": ["a", "b"], "side": "l"},
    "or = or": {"or": "or"},
    "code = 08": {"code": "08"},
    "code = 1.50": {"code": "1.50"},
    "ward = 'Ω; drop table x -- \u202e'": {"ward": "Ω; drop table x -- \u202e"},
}
REFUSED = [
    *["", "   ", "age", "and", "age >", "age > 3", "age <= 3", "age != ", "age !== 3", "age >= old", "age < '3'"],
    *[
        "age in",
        "age in [1, 2]",
        "age in (1, 2",
        "age in [1 2)",
        "age in [1,)",
        "age in [a, b)",
        "age in []",
        "w in ()",
    ],
    *["w = 'open", "w = 'a''", "w = 'a' 'b'", "w = a b", "w = a and", "and w = a", "w = a or v = b", "w = a, v = b"],
    *[
        "w is null",
        "w is not a",
        "w is",
        "not w = a",
        "w = (a)",
        "1 = 1",
        "'w' = a",
        '"w" = a',
        "w = a;",
        "w = a -- b",
    ],
    *[
        "w = a or",
        "or w = a",
        "w != a or w = b",
        "w = a or w != b",
        "age < 3 or age >= 9",
        "w = a or w = b and age >= 3",
        "age >= 3 and w = a or w = b",
        "(w = a and v = b)",
        "(w = a or w = b",
        "((w = a))",
        "w != a and w = b",
        "age >= 1 and age >= 2",
        "age in [1, 2) and age < 2",
        "w = a and w = b",
        "w is other and w >= 1",
        "w >= 1 and w = a",
    ],
    *[
        "age >= - 5",
        "age >= 0x10",
        "age >= nan",
        "age >= 1e",
        "w = a\x00",
        "w = \udcff",
        "ωard = a",
        "w = a.b",
        "w.x = a",
    ],
]


@pytest.mark.parametrize(("where", "box"), MEANINGS.items())
def test_a_condition_means_its_box(where: str, box: dict[str, Condition]) -> None:
    assert parse_where(where) == box


@pytest.mark.parametrize("where", REFUSED)
def test_whatever_else_is_refused_with_an_example(where: str) -> None:
    with pytest.raises(
        Refused, check=coded("where_refused"), match="age in \\[60, 80\\) and ward = 'surgery'"
    ) as refused:
        parse_where(where)
    str(refused.value).encode()  # can be printed, whatever was typed
    assert "\x00" not in str(refused.value)


@pytest.mark.parametrize(
    ("where", "mend"),
    [
        ("ward = Old Town", "write 'Old Town' in single quotes."),
        ("ward = Old Town West and age >= 3", "write 'Old Town West' in single quotes."),
        ("ward = a or ward = 4 b", "write '4 b' in single quotes."),
        ('ward = "Old Town"', "write 'Old Town' in single quotes, and not in double ones."),
        ('ward in ("l\'an", b)', "write 'l''an' in single quotes"),
        ("(ward = Old Town)", "write 'Old Town' in single quotes"),
        ("ward in (a, Old Town)", "write 'Old Town' in single quotes"),
        ('age >= 3 and "ward" = a', "write the axis 'ward' without quotes"),
        ('ward = "Old', "write 'Old' in single quotes"),
    ],
)
def test_a_category_without_its_quotes_is_refused_with_them(where: str, mend: str) -> None:
    with pytest.raises(Refused, check=coded("where_refused"), match=f"--where: {re.escape(mend)}"):
        parse_where(where)


def test_a_refusal_says_where_it_stopped() -> None:
    with pytest.raises(Refused, check=coded("where_refused"), match="'\\)' is expected before '\\]'"):
        parse_where("age in [60, 80]")
    with pytest.raises(Refused, check=coded("where_refused"), match="a number is expected at the end"):
        parse_where("age >=")
    with pytest.raises(Refused, check=coded("where_refused"), match="categories stand in round brackets"):
        parse_where("ward in ['a', 'b']")
    with pytest.raises(Refused, check=coded("where_refused"), match="'ward' has two conditions"):
        parse_where("ward = a and ward = b")
    with pytest.raises(
        Refused, check=coded("where_refused"), match="`or` joins categories of one axis, not 'ward' and 'age'"
    ):
        parse_where("ward = a or age = b")
    with pytest.raises(
        Refused, check=coded("where_refused"), match="beside `and`, put the conditions that `or` joins into parentheses"
    ):
        parse_where("ward = a or ward = b and age >= 3")


@pytest.mark.parametrize(
    ("where", "mend"),
    [
        ("age > 60", "`age >= 61`"),
        ("age <= -5", "`age < -4`"),
        ("age > 6.5", "`age >= END`"),
        ("age >", "`age >= END`"),
        ("day > 2026-02-28", "`day >= 2026-03-01`"),
        ("day <= 9999-12-31", "`day < END`"),
    ],
)
def test_an_end_that_ranges_do_not_hold_is_refused_with_the_one_to_ask_for(where: str, mend: str) -> None:
    with pytest.raises(
        Refused, check=coded("where_refused"), match=r"Use >= and <.*a range, as in `\w+ in \[low, high\)`"
    ) as refused:
        parse_where(where)
    assert mend in str(refused.value)


def test_long_texts_are_refused_unread() -> None:
    assert parse_where("w = '" + "a" * (LONGEST - 6) + "'") == {"w": "a" * (LONGEST - 6)}
    with pytest.raises(Refused, check=coded("where_refused"), match="longer than 2000 characters"):
        parse_where("w = '" + "a" * (LONGEST - 5) + "'")


def test_nothing_that_is_short_enough_takes_long_to_read() -> None:
    for hostile in ("'" * LONGEST, "w = " + "'" * (LONGEST - 5), "1" * LONGEST, "w in (" + "a," * 990, " " * LONGEST):
        started = time.process_time()
        with pytest.raises(Refused, check=coded("where_refused")):
            parse_where(hostile)
        assert time.process_time() - started < 2, hostile[:20]


@pytest.mark.slow
@examples(100)
@given(st.text(max_size=60))
def test_any_text_gives_a_box_or_a_refusal(where: str) -> None:
    with suppress(Refused):
        assert parse_where(where)


PIECES = [
    "age",
    "ward",
    "in",
    "is",
    "and",
    "or",
    "not",
    "!=",
    "other",
    "[",
    "(",
    ")",
    "]",
    ",",
    "=",
    ">=",
    "<",
    "<=",
    "60",
    "-1e3",
    "'a'",
    "''",
    "'",
]


@examples(300)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join))
def test_any_mixture_of_its_words_gives_a_box_or_a_refusal(where: str) -> None:
    with suppress(Refused):
        assert set(parse_where(where)) <= {"age", "ward", "in", "is", "and", "or", "not", "other"}


@pytest.mark.slow
@examples(300)
@given(st.text(max_size=40))
def test_any_category_can_be_asked_for_in_quotes(category: str) -> None:
    doubled = category.replace("'", "''")
    assert parse_where(f"ward = '{doubled}' and age >= 1") == {"ward": category, "age": (1.0, None)}
