"""A release as search engines and data loaders read it: Croissant 1.0, JSON-LD.

It describes the files of `latest/` with all current cells: where they lie, their digests, and each column with its type
and meaning, as the file itself says them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dphist_pipeline.answering.exports.rows import Exported, charged_at, current_files, days_of, title_of
from dphist_pipeline.base.about_publisher import link_of
from dphist_pipeline.publishing.published_files import PublishedFolder

_TYPES = {"string": "sc:Text", "double": "sc:Float", "bool": "sc:Boolean", "date32[day]": "sc:Date"}
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{
        name: f"cr:{name}" for name in ("citeAs", "column", "extract", "field", "fileProperty", "fileObject", "fileSet")
    },
    **{name: f"cr:{name}" for name in ("format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField")},
    **{name: f"cr:{name}" for name in ("path", "recordSet", "references", "regex", "repeated", "replace", "separator")},
    **{name: f"cr:{name}" for name in ("source", "subField", "transform")},
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}


def write(exported: Exported, file: Path) -> None:
    """Writes the description.

    Files are named by their addresses where `about.json` tells where the public folder is on the web, else by their
    paths from the folder of the description.

    Raises:
        ValueError: a part of the release was asked for, or the files are not there yet.
    """
    about, release = exported.about, str(exported.audit["release"])
    folder = PublishedFolder(exported.publications[-1].folder)
    distribution, record_sets = list[dict[str, Any]](), list[dict[str, Any]]()
    for path in (path for path in current_files(exported) if path.suffix == ".parquet"):
        place = path.relative_to(folder.release.parent).as_posix()
        name = (
            release if path.parent.name == "latest" or "=" not in path.parent.name else f"{release}/{path.parent.name}"
        )
        with path.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        distribution.append(
            {
                "@type": "cr:FileObject",
                "@id": place,
                "name": place,
                "description": "One row for each cell of the latest revision of each period.",
                "contentUrl": about.address_of(place) or Path(os.path.relpath(path, file.parent)).as_posix(),
                "contentSize": f"{path.stat().st_size} B",
                "encodingFormat": "application/x-parquet",
                "sha256": digest,
            }
        )
        record_sets.append(
            {
                "@type": "cr:RecordSet",
                "@id": name,
                "name": name,
                "description": f"{title_of(exported)}: one record for each cell of each period.",
                "field": list(_fields(name, place, path)),
            }
        )
    description = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": release,
        "description": f"{title_of(exported)}. Differentially private counts: every declared cell has a row, with an "
        "estimate, a 95 % interval and no exact count.",
        "version": f"{len(exported.publications)}.0.0",
        **_whose(exported),
        **_coverage(exported),
        "inLanguage": [exported.language],
        "distribution": distribution,
        "recordSet": record_sets,
    }
    file.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def _fields(records: str, place: str, file: Path) -> Iterator[dict[str, Any]]:
    """The columns of a file."""
    schema = pq.read_schema(file)
    meanings = json.loads(schema.metadata[b"columns"])
    for column in schema:
        yield {
            "@type": "cr:Field",
            "@id": f"{records}/{column.name}",
            "name": f"{records}/{column.name}",
            "description": meanings[column.name],
            "dataType": _TYPES.get(str(column.type), "sc:Integer"),
            "source": {"fileObject": {"@id": place}, "extract": {"column": column.name}},
        }


def _coverage(exported: Exported) -> dict[str, Any]:
    """Where the records are from, as the office says it, and when: from the first day to the last of all periods."""
    periods = [days for one in exported.publications if (days := days_of(one.audit)) is not None]
    when = exported.about.temporal
    if periods:
        first, after = min(start for start, _ in periods), max(end for _, end in periods)
        when = f"{first.isoformat()}/{(after - timedelta(days=1)).isoformat()}"
    return {
        **({"spatialCoverage": exported.about.spatial} if exported.about.spatial else {}),
        **({"temporalCoverage": when} if when else {}),
    }


def _whose(exported: Exported) -> dict[str, Any]:
    """Licence, publisher, contact, address, date and citation, as far as they are known."""
    about, day, release = exported.about, charged_at(exported)[:10], str(exported.audit["release"])
    cited = ". ".join(filter(None, [about.publisher, f"Differentially private counts: {release}", day]))
    office: dict[str, Any] = {"@type": "sc:Organization", "name": about.publisher}
    if link := link_of(about.contact):
        office["email" if link.startswith("mailto:") else "url"] = about.contact
    return {
        **({"license": about.license} if about.license else {}),
        **({"publisher": office, "creator": office} if about.publisher else {}),
        **({"url": home} if (home := about.address_of("index.html")) else {}),
        **({"keywords": keywords} if (keywords := about.words()) else {}),
        **({"datePublished": day} if day else {}),
        "citeAs": about.citation or f"{cited}.",
    }
