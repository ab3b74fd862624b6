"""`croissant.json`: what is published, as search engines and data loaders read it (Croissant 1.0, JSON-LD).

Each release is a set of files, those of its current revisions, and a record set with its published columns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dphist_pipeline.about_publisher import About, link_of
from dphist_pipeline.answering._views import Described
from dphist_pipeline.files import replace_public
from dphist_pipeline.languages.texts import ENGLISH
from dphist_pipeline.published_columns import KINDS_OF_VALUES
from dphist_pipeline.publishing.axis_labels import ReaderAxis
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.published_files import PublishedFolder, read_audit

SCHEMA_VERSION = "1.0.0"  # of this description
HISTOGRAM = "histogram.parquet"
DESCRIPTION = (
    "Differentially private tables of counts, published by dphist. Every declared cell has a row, with an estimate, a "
    "95 % interval and no exact count. The files of each release are those of the latest revision of each period; "
    "catalog.duckdb beside this one has views of them and macros that answer questions with intervals."
)
_LD = {"@type": "@id"}
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


def write_croissant(public: Path, scratch: Path) -> None:
    """Writes the description of all releases that have current files, one process at a time.

    Releases that did not change are not read again.

    Raises:
        PublishedFilesDamaged: a file of a latest publication is missing or altered.
    """
    before, distribution, record_sets = _described(public / DerivedFiles.croissant), list[Any](), list[Any]()
    dates, covered, spoken, about = set[str](), set[str](), set[str](), About.of(public)
    for path in sorted(public.glob(f"*/{DerivedFiles.current}")):
        content = path.read_bytes()
        periods = json.loads(content)["periods"]
        if periods:
            first, last = (_audit(path.parent, one) for one in (periods[0], periods[-1]))
            dates |= {day for day in (str((last.get("ledger") or {}).get("charged_at", ""))[:10],) if day}
            covered |= _days(first) | _days(last)
            spoken.add(about.language_of(last) or ENGLISH.code)
            digest = hashlib.sha256(content).hexdigest()
            for name, inside in _named(path.parent, periods[-1]):
                files, records = before.get((name, digest)) or _release(path.parent, periods, digest, name, inside)
                distribution += files
                record_sets.append(records)
    description = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "published_counts",
        "description": DESCRIPTION,
        "version": SCHEMA_VERSION,
        **_whose(about, max(dates, default=""), [str(one["name"]) for one in record_sets]),
        **_coverage(about, covered),
        **({"inLanguage": sorted(spoken)} if spoken else {}),
        "distribution": distribution,
        "recordSet": record_sets,
    }
    text = json.dumps(description, indent=2) + "\n"
    if (
        not (public / DerivedFiles.croissant).is_file()
        or (public / DerivedFiles.croissant).read_bytes() != text.encode()
    ):
        replace_public(public / DerivedFiles.croissant, text, scratch)


def _audit(folder: Path, listed: Mapping[str, Any]) -> dict[str, Any]:
    """The audit of a publication that a list of current files names; empty if it cannot be read."""
    place = folder / f"period={listed['period']}" / f"revision={listed['revision']}"
    with suppress(OSError, ValueError, RecursionError):
        read = json.loads((place / "audit.json").read_bytes())
        return read if isinstance(read, dict) else {}
    return {}


def _days(audit: Mapping[str, Any]) -> set[str]:
    """The first and the last day of a publication; none without a period."""
    with suppress(ValueError, TypeError):
        start, end = (date.fromisoformat(str(audit.get(f"period_{name}"))[:10]) for name in ("start", "end"))
        return {start.isoformat(), (end - timedelta(days=1)).isoformat()}
    return set()


def _coverage(about: About, days: set[str]) -> dict[str, Any]:
    """Where the records are from, as the office says it, and when: from the first day to the last of all periods."""
    when = f"{min(days)}/{max(days)}" if days else about.temporal
    return {
        **({"spatialCoverage": about.spatial} if about.spatial else {}),
        **({"temporalCoverage": when} if when else {}),
    }


def _whose(about: About, day: str, releases: list[str]) -> dict[str, Any]:
    """Licence, publisher, contact, address, date and citation, as far as they are known."""
    cited = ". ".join(filter(None, [about.publisher, f"Differentially private counts: {', '.join(releases)}", day]))
    office: dict[str, Any] = {"@type": "sc:Organization", "name": about.publisher}
    if link := link_of(about.contact):
        office["email" if link.startswith("mailto:") else "url"] = about.contact
    return {
        **({"license": about.license} if about.license else {}),
        **({"publisher": office, "creator": office} if about.publisher else {}),
        **({"url": about.address_of(DerivedFiles.index)} if about.address_of(DerivedFiles.index) else {}),
        **({"keywords": keywords} if (keywords := about.words()) else {}),
        **({"datePublished": day} if day else {}),
        "citeAs": about.citation or f"{cited}.",
    }


def _described(path: Path) -> dict[tuple[str, str], tuple[list[Any], Any]]:
    """What the file says of each release: by its name and the digest of its list of files."""
    with suppress(OSError, ValueError, KeyError, TypeError, IndexError):
        content = json.loads(path.read_bytes())
        if content["version"] == SCHEMA_VERSION and content["description"] == DESCRIPTION:
            pairs = zip(content["distribution"][::2], content["distribution"][1::2], strict=True)
            record_sets = zip(pairs, content["recordSet"], strict=True)
            return {
                (records["name"], listed["sha256"]): ([listed, files], records)
                for (listed, files), records in record_sets
            }
    return {}


def _named(folder: Path, latest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The name of a release with where its cells lie in a publication; of a family, those of its tables."""
    holding = [path.parent for path in (Path(file["path"]) for file in latest["files"]) if path.name == HISTOGRAM]
    tables = [place for place in holding if PublishedFolder(place).is_table]
    return [(f"{folder.name}_{place.name}", f"{place.parent.name}/{place.name}/") for place in tables] or [
        (folder.name, "")
    ]


def _release(
    folder: Path, periods: list[Mapping[str, Any]], digest: str, name: str, inside: str
) -> tuple[list[Any], Any]:
    """The files and the record set of a release, or of a table of a family: with the columns of the latest one."""
    latest = periods[-1]
    place = folder / f"period={latest['period']}" / f"revision={latest['revision']}" / inside
    audit, columns = read_audit(place), pq.read_schema(place / HISTOGRAM).names
    alike = [entry for entry in periods if entry["grid"] == latest["grid"]]
    paths = [
        f"{folder.name}/{file['path']}"
        for entry in alike
        for file in entry["files"]
        if file["path"].endswith(f"/{inside}{HISTOGRAM}")
    ]
    file_object = {
        "@type": "cr:FileObject",
        "@id": f"{name}/{DerivedFiles.current}",
        "name": f"{name}/{DerivedFiles.current}",
        "description": "Lists the files of the current revisions with their digests.",
        "contentUrl": f"{folder.name}/{DerivedFiles.current}",
        "encodingFormat": "application/json",
        "sha256": digest,
    }
    files = {
        "@type": "cr:FileSet",
        "@id": f"{name}/files",
        "name": f"{name}/files",
        "description": "One file for each period: the latest revision.",
        "encodingFormat": "application/x-parquet",
        "includes": paths,
    }
    title = str(audit.get("title") or name)
    records = {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"{title}: one record for each cell of each period.",
        "field": list(_fields(name, audit, columns)),
    }
    return [file_object, files], records


def _fields(release: str, audit: Mapping[str, Any], columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The fields of a release: period and revision, which its paths have, and the columns of its files."""
    described = Described.of(release, (), [audit])
    comments = described.comments
    files = {"fileSet": {"@id": f"{release}/files"}}
    for key, kind in (("period", "sc:Text"), ("revision", "sc:Integer")):
        place = {**files, "extract": {"fileProperty": "fullpath"}, "transform": {"regex": f".*{key}=([^/]+)/.*"}}
        yield _field(release, key, kind, comments[key], place)
    kinds = {name: str(kind) for axis in described.axes for name, kind in ReaderAxis(axis).published.items()}
    kinds |= {name: kind for name, kind in KINDS_OF_VALUES.items() if name in columns}  # an older file may lack one
    types = {"string": "sc:Text", "double": "sc:Float", "int64": "sc:Integer"}
    for name, kind in kinds.items():
        yield _field(release, name, types[kind], comments[name], {**files, "extract": {"column": name}})


def _field(release: str, name: str, kind: str, about: str, source: Mapping[str, Any]) -> dict[str, Any]:
    identifier = f"{release}/{name}"
    return {
        "@type": "cr:Field",
        "@id": identifier,
        "name": identifier,
        "description": about,
        "dataType": kind,
        "source": source,
    }
