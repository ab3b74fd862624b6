"""A valid collection, and what refusing a change to it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from dphist_pipeline.local.collection import CollectionSpec
from dphist_pipeline.spec.mistakes import SpecError

CITY = {"name": "city", "epsilon": 1, "width": 5}
STATE = {"name": "state", "epsilon": 2, "bins": 4}
SCHOOLS = {"name": "schools", "epsilon": 1, "edges": [0, 6, 18, 65, 100]}
BASE = Path("/srv/office")
VALID: dict[str, object] = {
    "collection": "ages",
    "value": "age",
    "start": 0,
    "stop": 100,
    "consumers": [CITY, STATE, SCHOOLS],
    "protocol": "chp",
}


def collected(**changes: object) -> CollectionSpec:
    """The valid spec with some fields changed; `...` leaves a field out."""
    return CollectionSpec.from_attributes(
        {key: value for key, value in {**VALID, **changes}.items() if value is not ...}, BASE
    )


def refusal(**changes: object) -> dict[str, str]:
    """What is wrong with the changed spec: place (below `attributes`) to message."""
    with pytest.raises(SpecError) as caught:
        collected(**changes)
    assert str(caught.value).startswith("collection spec: ")
    assert "pydantic" not in str(caught.value) and "http" not in str(caught.value)
    return {place.removeprefix("attributes.").removeprefix("attributes"): what for place, what in caught.value.problems}
