"""Dates as people write them, such as TT.MM.JJJJ or 14.09.2026, as formats that a spec takes."""

from __future__ import annotations

import re
from itertools import permutations

from dphist_pipeline.spec.sources import ISO

_PARTS = re.compile(r"([A-Za-z]+|\d+)([./-])([A-Za-z]+|\d+)\2([A-Za-z]+|\d+)", re.ASCII)
_WORDS = {
    "%Y": re.compile(r"[yja]{4}|\d{4}", re.I),
    "%m": re.compile(r"m{1,2}|0?[1-9]|1[0-2]", re.I),
    "%d": re.compile(r"[dtjg]{1,2}|0?[1-9]|[12]\d|3[01]", re.I),
}
_ORDERS = ("%d%m%Y", "%Y%m%d", "%m%d%Y")


def formats_meant(written: str) -> list[str]:
    """The formats that a written date or its pattern may mean, the likeliest first; none for other texts."""
    parts = _PARTS.fullmatch(written.strip())
    if parts is None:
        return []
    sign, texts = parts[2], (parts[1], parts[3], parts[4])
    formats = []
    for order in permutations(_WORDS):
        if "".join(order) in _ORDERS and all(
            _WORDS[one].fullmatch(text) for one, text in zip(order, texts, strict=True)
        ):
            formats.append(sign.join(order))
    formats.sort(key=lambda one: _ORDERS.index(one.replace(sign, "")))
    return [ISO if one == "%Y-%m-%d" else one for one in formats]
