"""The laws of noise: whatever asks how wide an interval is, or what a sum of draws may be, asks here.

`NoiseLaw` is what is asked of the noise of doors; `noise_law(scale)` names it. A new law is a file beside `_laplace`.
`ReportLaw` is the error law of counts from reports, in the local model.
"""

from dphist_pipeline.estimates.laws._interface import (
    LEVEL,
    LEVEL_OF_TWO,
    SURE,
    NoiseLaw,
    Tail,
)
from dphist_pipeline.estimates.laws._laplace import (
    LEAST_VARIANCE_OF_SHARES,
    NOISE,
    Scales,
    bound_of_draws,
    bound_of_sum,
    bound_of_variance,
    bound_of_weights,
    noise_law,
    tail_of_sum,
    variance,
)
from dphist_pipeline.estimates.laws._reports import ReportLaw, bernstein_factor, normal_factor, report_reach

__all__ = [
    "LEAST_VARIANCE_OF_SHARES",
    "LEVEL",
    "LEVEL_OF_TWO",
    "NOISE",
    "SURE",
    "NoiseLaw",
    "ReportLaw",
    "Scales",
    "Tail",
    "bernstein_factor",
    "bound_of_draws",
    "bound_of_sum",
    "bound_of_variance",
    "bound_of_weights",
    "noise_law",
    "normal_factor",
    "report_reach",
    "tail_of_sum",
    "variance",
]
