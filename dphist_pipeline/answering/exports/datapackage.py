"""What the columns of a CSV file mean, as a Frictionless data package (version 1) with a table schema."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dphist_pipeline.answering.exports import columns
from dphist_pipeline.answering.exports.rows import Exported, charged_at, facts_of, title_of
from dphist_pipeline.base.about_publisher import link_of
from dphist_pipeline.base.shown_below import limit_of
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.publishing.axis_labels import ReaderAxis

# By Arrow's words.
_KINDS = {"double": "number", "int64": "integer", "bool": "boolean", "date32": "date", "string": "string"}

_KINDS_FOR_READERS = {"label": "string", "order": "integer", "from": "number", "to": "number"}


def datapackage(exported: Exported, name: str, data: Path) -> str:
    """The description of the CSV file that lies beside it under its name, as JSON.

    Of the draft `data` only size and digest are read.
    """
    with data.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    release = str(exported.audit["release"])
    package = {
        "profile": "tabular-data-package",
        "name": release,
        "title": title_of(exported),
        "description": "\n".join(f"{fact}: {text}" for fact, text in facts_of(exported)),
        **_whose(exported),
        "resources": [
            {
                "profile": "tabular-data-resource",
                "name": release,
                "path": name,
                **{"format": "csv", "mediatype": "text/csv", "encoding": "utf-8"},
                **{"bytes": data.stat().st_size, "hash": f"sha256:{digest}"},
                "dialect": {"delimiter": ",", "lineTerminator": "\n", "quoteChar": '"', "doubleQuote": True},
                "schema": {
                    "fields": list(_fields(exported)),
                    "missingValues": [""],
                    **_key(exported),
                },
            }
        ],
    }
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"


def _whose(exported: Exported) -> dict[str, Any]:
    """Licence, publisher, keywords, address and day, as far as they are known."""
    about, charged = exported.about, charged_at(exported)
    licence = {"path": about.license} if link_of(about.license).startswith("http") else {"name": about.license}
    mail = {"email": about.contact} if link_of(about.contact).startswith("mailto:") else {}
    home = about.address_of(f"{exported.audit['release']}/index.html")
    return {
        **({"licenses": [licence]} if about.license else {}),
        **({"contributors": [{"title": about.publisher, **mail, "role": "publisher"}]} if about.publisher else {}),
        **({"keywords": about.words()} if about.keywords else {}),
        **({"homepage": home} if home and "tables" not in exported.publications[-1].folder.parts else {}),
        **({"created": charged} if charged else {}),
    }


def _fields(exported: Exported) -> Iterator[Mapping[str, Any]]:
    """Each column with its type and meaning."""
    kinds = _kinds(exported)
    for name, meaning in exported.columns.items():
        words = "; ".join(f"{word or '(empty)'}: {text}" for word, text in RELIABILITY.legend.items())
        about = f"{meaning}: {words}" if name == "reliability" and kinds[name] == "string" else meaning
        yield {"name": name, "type": kinds[name], "description": about}


def _kinds(exported: Exported) -> dict[str, str]:
    """The type of each column; a column that is a number in one period and a text in another one is text."""
    kind_of_column = dict[str, str]()
    for axis in (axis for one in exported.publications for axis in one.domain.axes):
        kinds = {
            f"{axis.name}_is_other": "boolean",
            **{name: _KINDS_FOR_READERS[kind] for name, (kind, _) in ReaderAxis(axis).columns.items()},
            **{name: _KINDS.get(str(kind), "string") for name, kind in ReaderAxis(axis).published.items()},
        }
        kind_of_column |= {
            name: kind if kind_of_column.get(name, kind) == kind else "string" for name, kind in kinds.items()
        }
    # Words in place of a figure are no number, and no missing value: a category or a bin may be called so, too.
    has_words = any(limit_of(one.audit) is not None for one in exported.publications)
    numbers = {
        column.name: "string" if column.is_hidden and has_words else _KINDS[column.kind] for column in columns.COLUMNS
    }
    return {name: kind_of_column.get(name) or numbers[name] for name in exported.columns}


def _key(exported: Exported) -> dict[str, Any]:
    """The columns that tell rows apart: period and place along each axis; none where an axis took their names."""
    axes = list(dict.fromkeys(axis.name for one in exported.publications for axis in one.domain.axes))
    key = ["period", *(f"{axis}_order" for axis in axes)]
    alike = all(len(one.domain.axes) == len(axes) for one in exported.publications)
    return {"primaryKey": key} if alike and all(name in exported.columns for name in key) else {}
