"""The laws of noise: whatever asks how wide an interval is, or what a sum of draws may be, asks here.

`NoiseLaw` is what is asked of the noise of measurements; `noise_law(scale)` names it. A new law is a file beside
`_laplace`. `ReportLaw` is the error law of counts from reports, in the local model. `INTERVALS` has what SQL and
scripts share.
"""

from dphist_pipeline.estimates.laws._interface import (
    LEVEL,
    LEVEL_OF_TWO,
    NoiseLaw,
    Tail,
)
from dphist_pipeline.estimates.laws._interval_levels import INTERVALS
from dphist_pipeline.estimates.laws._laplace import (
    NOISE,
    Scales,
    named_law,
    noise_law,
    parts_named,
)
from dphist_pipeline.estimates.laws._report_law import ReportLaw, bernstein_factor, normal_factor, report_reach

__all__ = [
    "INTERVALS",
    "LEVEL",
    "LEVEL_OF_TWO",
    "NOISE",
    "NoiseLaw",
    "ReportLaw",
    "Scales",
    "Tail",
    "bernstein_factor",
    "named_law",
    "noise_law",
    "normal_factor",
    "parts_named",
    "report_reach",
]
