"""What stands in for pictures where none is looked at."""

from __future__ import annotations

from markupsafe import Markup

from dphist_pipeline.publishing import pages
from dphist_pipeline.publishing.pictures import Picture

# Object, attribute, and what takes its place.
UNDRAWN = (
    (Picture, "svg", lambda picture, heading="": "<svg/>"),
    (pages, "_picture_svg", lambda picture: ("0 0 1 1", Markup("<g/>"))),
)
