"""A chart that this process drew before is not drawn anew: the engine gives the same SVG for the same chart."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from dphist_pipeline.publishing import _vega, pages
from dphist_pipeline.publishing.pictures import Picture

really_drawn = _vega._converted
# What stands in for pictures where none is looked at: object, attribute, and what takes its place.
UNDRAWN = (
    (Picture, "svg", lambda picture, heading="": "<svg/>" if heading else "<g/>"),
    (pages, "svg_in_page", lambda svg: ("0 0 1 1", svg)),
)


def drawn(chart: dict[str, Any]) -> str:
    """As `_vega._converted`; of the last charts that were drawn, each was drawn once."""
    return _drawn(json.dumps(chart))


@lru_cache(maxsize=300)
def _drawn(chart: str) -> str:
    return really_drawn(json.loads(chart))
