"""A chart that this process drew before is not drawn anew: the engine gives the same SVG for the same chart."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from dphist_pipeline.publishing import _vega

really_drawn = _vega._converted


def drawn(chart: dict[str, Any]) -> str:
    """As `_vega._converted`; of the last charts that were drawn, each was drawn once."""
    return _drawn(json.dumps(chart))


@lru_cache(maxsize=300)
def _drawn(chart: str) -> str:
    return really_drawn(json.loads(chart))
