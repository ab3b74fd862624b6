"""Help of `new`, `rehearse` and `forecast`: whole, within 80 columns, and enough to begin with."""

from __future__ import annotations

import re

import pytest
from office import Office


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("new", "`dphist check` refuses the draft until every TO_DECIDE is replaced. Never overwrites a file."),
        ("rehearse", "Every number is invented: your source, store and ledger are not touched."),
        ("forecast", "They are exact if they follow from the noise law, else simulated"),
    ],
)
def test_help_is_whole_and_fits_eighty_columns(office: Office, command: str, says: str) -> None:
    ran = office.run(command, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert "…" not in ran.out and max(map(len, ran.out.splitlines())) <= 80
    assert says in re.sub(r"[\s│╭╮╰╯─]+", " ", ran.out)
    lines = [line.strip() for line in ran.out.split("╭─")[0].splitlines() if line.strip()][1:]
    assert all(len(line) > 40 or line.endswith(".") for line in lines)
    assert command in office.run("--help").out
