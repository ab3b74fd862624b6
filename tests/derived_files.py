"""What a publication makes anew in a public folder: the catalogue, the cells for readers, the picker and the pages."""

from __future__ import annotations

from pathlib import Path

from dphist_pipeline.answering import building
from dphist_pipeline.publishing.derived_files import DerivedFiles


def made_anew(public: Path) -> Path:
    """The catalogue and all that is made from it in a public folder, in the order of a publication."""
    scratch = public.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    DerivedFiles(public).write_current_files(scratch)
    building.build(public, scratch)
    return public
