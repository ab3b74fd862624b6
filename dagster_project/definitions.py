"""What `dg dev` and `dg launch` load: every `defs.yaml` below `defs/`."""

from pathlib import Path

from dagster import Definitions, definitions, load_from_defs_folder


@definitions
def defs() -> Definitions:
    """All releases of this project."""
    return load_from_defs_folder(path_within_project=Path(__file__).parent)
