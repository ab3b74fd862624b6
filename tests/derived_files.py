"""What a publication makes anew in a public folder: the catalogue, the cells for readers, the picker and the pages."""

from __future__ import annotations

from pathlib import Path

from quick_catalogue import build_catalogue

from dphist_pipeline.answering._downloads import write_downloads
from dphist_pipeline.answering._picker_files import write_picker
from dphist_pipeline.publishing._index_pages import write_index
from dphist_pipeline.publishing._latest_cells import write_latest_cells
from dphist_pipeline.publishing.derived_files import DerivedFiles


def made_anew(public: Path) -> Path:
    """The catalogue and all that is made from it in a public folder, in the order of a publication."""
    scratch = public.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    DerivedFiles(public).write_current_files(scratch)
    write_latest_cells(public, scratch)
    build_catalogue(public, scratch)
    write_picker(public, scratch)
    write_downloads(public, scratch)
    write_index(public, scratch)
    return public
