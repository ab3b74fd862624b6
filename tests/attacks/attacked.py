"""A valid spec that attacks change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dphist_pipeline.releasing.release_spec import ReleaseSpec

VALID: dict[str, Any] = {
    **{"release": "admissions", "source": "*.parquet", "privacy_unit": "person", "max_rows_per_unit": 3},
    **{"neighbours": "add_remove", "epsilon": 1, "account": "health", "mechanism": "geometric"},
    "axes": [{"column": "age", "start": 0, "stop": 30, "width": 10}],
}


def spec(base: Path, **changes: Any) -> ReleaseSpec:
    """The valid spec with some fields changed."""
    return ReleaseSpec.from_attributes({**VALID, **changes}, base)
