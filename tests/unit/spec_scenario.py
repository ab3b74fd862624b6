"""A valid spec, and what refusing a change to it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.mistakes import SpecError

AGE = {"column": "age", "start": 0, "stop": 100, "width": 5, "above": True}
WARD = {"column": "ward", "values": ["surgery", "medicine", "maternity"], "other": True}
BASE = Path("/srv/office")
VALID: dict[str, object] = {
    "release": "weekly_admissions",
    "source": "data/admissions/*.parquet",
    "privacy_unit": "patient_id",
    "max_rows_per_unit": 3,
    "neighbours": "add_remove",
    "epsilon": 0.5,
    "account": "health",
    "mechanism": "geometric",
    "axes": [AGE, WARD],
    "period": "week",
    "period_column": "admitted_on",
}


def spec(**changes: object) -> ReleaseSpec:
    """The valid spec with some fields changed; `...` leaves a field out."""
    return ReleaseSpec.from_attributes(
        {key: value for key, value in {**VALID, **changes}.items() if value is not ...}, BASE
    )


def refusal(**changes: object) -> dict[str, str]:
    """What is wrong with the changed spec: place (below `attributes`) to message."""
    with pytest.raises(SpecError) as caught:
        spec(**changes)
    assert "pydantic" not in str(caught.value) and "http" not in str(caught.value)
    return {place.removeprefix("attributes.").removeprefix("attributes"): what for place, what in caught.value.problems}
