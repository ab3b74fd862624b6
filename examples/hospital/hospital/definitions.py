"""All definitions of the project: Python files and specs below `defs/`."""

from pathlib import Path

from dagster import Definitions, definitions, load_from_defs_folder


@definitions
def defs() -> Definitions:
    """Ingestion, the release and the report."""
    return load_from_defs_folder(path_within_project=Path(__file__).parent)
