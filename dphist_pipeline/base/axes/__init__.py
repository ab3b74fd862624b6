"""The kinds of axes: what each says of itself stands in one file a kind.

A new kind answers what `AxisKind` asks, joins `Axis` here, and gets its form in specs (`spec/_…_axes.py`); where a type
checker then fails, somebody still asks of which kind an axis is. Nothing here reads records.
"""

from dphist_pipeline.base.axes._amount import AmountAxis
from dphist_pipeline.base.axes._banded import BandedAxis
from dphist_pipeline.base.axes._binned import BinnedAxis
from dphist_pipeline.base.axes._calendar import CalendarAxis, day_of, number_of_day
from dphist_pipeline.base.axes._categorical import CategoricalAxis
from dphist_pipeline.base.axes._interface import Along, AxisKind, Kind, PublicType, Reads

__all__ = [
    "KINDS",
    "Along",
    "AmountAxis",
    "Axis",
    "AxisKind",
    "BandedAxis",
    "BinnedAxis",
    "ByText",
    "CalendarAxis",
    "CategoricalAxis",
    "Kind",
    "PublicType",
    "Reads",
    "day_of",
    "number_of_day",
]

Axis = BinnedAxis | CategoricalAxis | AmountAxis
# Axes whose source holds text that is compared, whatever is published.
ByText = BandedAxis | CategoricalAxis
KINDS: tuple[type[AxisKind], ...] = (BinnedAxis, CalendarAxis, BandedAxis, CategoricalAxis, AmountAxis)
