"""The answers for all cells of every period of a release, by one query: planning it costs more than running it."""

from __future__ import annotations

from pathlib import Path

from dphist_pipeline.answering._macro_calls import call_macro
from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.answering.catalogue import Catalogue
from dphist_pipeline.estimates.answers import Answer, found_in_row


def totals_of_periods(public: Path, release: str) -> dict[str, Answer]:
    """For each publication in force the answer for all cells, by the digest of its audit.

    Args:
        public: the store's public folder.
        release: which has publications.
    """
    publications = [Publication(*one) for one in Catalogue(public.resolve()).publications(release)]
    sources = {(one.period, one.revision): one for one in (each.source for each in publications)}
    rows = call_macro(tuple(sources.values()), "dph_box", "*", ("{}",)).to_pylist()
    return {sources[row["period"], row["revision"]].digest: found_in_row(Answer, row) for row in rows}
