"""Tables on a terminal of any width: numbers and names stay whole, and every row keeps all of its cells."""

from __future__ import annotations

import pytest

from dphist_pipeline.cli.terminal import table_lines

HEADER = ["release", "rows", "95 %", "reason"]
ROWS = [
    ("weekly_admissions", "17,935 ± 2,996", "14,291 to 20,283", "late records of three wards, asked for twice"),
    ("population", "1,000,106", "(999,839 to 1,000,039) ~", ""),
]


@pytest.mark.parametrize("width", [20, 36, 44, 60, 80, 200])
def test_no_number_and_no_name_breaks_on_any_width(width: int) -> None:
    text = "\n".join(line for heads, lines in table_lines(HEADER, ROWS, width) for line in (*heads, *lines))
    for row in ROWS:
        assert all(cell in text for cell in row[:3])
    assert all(word in text for word in ROWS[0][3].split())
    assert max(map(len, text.splitlines())) <= max(width, len("  rows     (999,839 to 1,000,039) ~"))


def test_columns_without_room_stand_below_with_the_names_again() -> None:
    parts = table_lines(HEADER, ROWS, 44)
    assert [heads[0].split() for heads, _ in parts] == [
        ["release", "rows"],
        ["release", "95", "%"],
        ["release", "reason"],
    ]
    assert all(lines[0].startswith("weekly_admissions") for _, lines in parts)


def test_words_of_a_sentence_go_on_in_the_next_line_and_a_bin_does_not() -> None:
    (part,) = table_lines(["age", "about"], [("80 to under 100", "rows of all wards together")], 30)
    assert part == (
        ["age              about"],
        ["80 to under 100  rows of all", " " * 17 + "wards", " " * 17 + "together"],
    )


def test_wide_letters_take_two_places() -> None:
    (part,) = table_lines(["a", "b"], [("病院", "1")], 80)
    assert part[0] == ["a     b"] and part[1] == ["病院  1"]


def test_where_not_even_a_name_and_a_number_fit_each_number_has_a_line() -> None:
    ((heads, lines),) = table_lines(["age", "ward", "rows"], [("0 to 19", "surgery", "1,631")], 12, keys=2)
    assert (heads, lines) == ([], ["0 to 19 surgery", "  rows  1,631"])
