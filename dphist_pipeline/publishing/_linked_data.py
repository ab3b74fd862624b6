"""What is published as search engines read it: JSON-LD in the words of schema.org, within a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dphist_pipeline.about_publisher import About
from dphist_pipeline.publishing.manifest import INDEX

CONTEXT = {"@context": "https://schema.org/"}
SURE = "Differentially private counts with 95 % intervals."
KINDS = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


@dataclass(frozen=True)
class Described:
    """A release in the words that search engines show; texts are empty where nothing stands or nobody knows.

    `name`: of its folder. `title`: of the newest publication. `words`: what is counted. `version`: the newest period
    and its revision. `modified`: the day of the latest publication. `days`: the first and the last one, `first/last`.
    """

    name: str
    title: str
    words: str
    version: str
    modified: str
    days: str


def dataset(described: Described, audit: Mapping[str, Any], about: About, files: Sequence[str]) -> dict[str, Any]:
    """A release for its own page; `files` have all current cells, below the folder of the release.

    The audit is of the newest publication; empty if there is none.
    """
    axes = [str(axis.get("column", "")) for axis in audit.get("axes") or [] if isinstance(axis, dict)]
    by = f" by {', '.join(axes)}" if axes else ""
    told = {"version": described.version, "dateModified": described.modified, "temporalCoverage": described.days}
    return {
        **CONTEXT,
        "@type": "Dataset",
        "name": described.title,
        "identifier": described.name,
        "description": f"{described.words}{by}. {SURE}",
        **_whose(about, f"{described.name}/{INDEX}"),
        **{name: text for name, text in told.items() if text},
        "isAccessibleForFree": True,
        "measurementTechnique": "differential privacy",
        **({"variableMeasured": axes} if axes else {}),
        "distribution": [
            {
                "@type": "DataDownload",
                "name": path,
                "contentUrl": about.address_of(f"{described.name}/{path}") or path,
                "encodingFormat": KINDS[path.rpartition(".")[2]],
            }
            for path in files
        ],
    }


def data_catalogue(title: str, modified: str, releases: Sequence[Described], about: About) -> dict[str, Any]:
    """All releases for the page of all; `modified`: the day of the latest publication, or empty."""
    return {
        **CONTEXT,
        "@type": "DataCatalog",
        "name": title,
        "description": f"Tables of counts about people. {SURE}",
        **_whose(about, INDEX),
        **({"dateModified": modified} if modified else {}),
        "dataset": [
            {
                "@type": "Dataset",
                "name": one.title,
                "description": f"{one.words}. {SURE}",
                "url": about.address_of(f"{one.name}/{INDEX}") or f"{one.name}/{INDEX}",
            }
            for one in releases
        ],
    }


def _whose(about: About, path: str) -> dict[str, Any]:
    """Publisher, licence, contact, citation and address, as far as they are known."""
    publisher = {"@type": "Organization", "name": about.publisher}
    if about.contact:
        publisher["contactPoint"] = about.contact
    return {
        **({"url": about.address_of(path)} if about.address_of(path) else {}),
        **({"publisher": publisher, "creator": publisher} if about.publisher else {}),
        **({"license": about.license} if about.license else {}),
        **({"citation": about.citation} if about.citation else {}),
    }


def json_in_page(told: object) -> Markup:
    """JSON in an element `script`: no letter of a text can end it, or begins a comment or another element."""
    text = json.dumps(told, separators=(",", ":"))  # letters beyond ASCII, line ends among them, become numbers
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)
