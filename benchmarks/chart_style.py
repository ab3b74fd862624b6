"""How charts of studies look: as the pictures of releases, with Altair."""

from __future__ import annotations

from typing import Any

from dphist_pipeline.publishing.drawing import FAINT, INK, LINE, WIDTH

CONFIG: dict[str, Any] = {
    "aria": False,
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "background": "white",
    "view": {"stroke": LINE},
    "axis": {
        **{"labelColor": INK, "titleColor": FAINT, "titleFontWeight": "normal", "labelFontSize": 11, "labelLimit": 300},
        **{"titleLimit": 400, "titlePadding": 16, "grid": False, "domain": False, "ticks": False, "labelPadding": 4},
    },
    "legend": {
        **{"labelColor": INK, "labelFontSize": 11, "orient": "bottom", "columnPadding": 44},
        **{"titleColor": FAINT, "titleFontWeight": "normal", "titleFontSize": 11},
    },
    "title": {
        **{"anchor": "start", "color": INK, "subtitleColor": FAINT, "fontSize": 13, "limit": 2 * WIDTH},
        **{"subtitleFontSize": 11, "subtitlePadding": 6, "offset": 12},
    },
}
