"""Parquet files in an object store as a source: `s3://bucket/path/*.parquet`, read where they lie.

DuckDB's extension httpfs reads them; it is loaded where the office has installed it, and nothing is ever installed or
downloaded for it. The files are listed first, by a session of its own. The session that reads records may open exactly
those (`allowed_paths` takes s3 addresses as it takes files), so external access is off there as everywhere.

Keys come from the environment alone, into one secret for one bucket: secrets that DuckDB keeps on disk are not read,
and settings that httpfs takes from the environment itself are put back, because a trusted query could read those.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from contextlib import closing
from pathlib import PurePosixPath

import duckdb

from dphist_pipeline.base.sql_files import identifier, literal
from dphist_pipeline.confidential.reading._source_files import folder_columns, open_parquet
from dphist_pipeline.confidential.reading.source import (
    NOTHING_INSTALLED,
    OpenedSource,
    SourceRefused,
    load,
    query_rows,
    withheld,
    without_values,
)
from dphist_pipeline.spec.sources import Source as WrittenSource

EXTENSION = "httpfs"
KEYS = {"KEY_ID": "AWS_ACCESS_KEY_ID", "SECRET": "AWS_SECRET_ACCESS_KEY", "SESSION_TOKEN": "AWS_SESSION_TOKEN"}
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
ENDPOINT = "AWS_ENDPOINT_URL"
USUAL_REGION, USUAL_ENDPOINT = "us-east-1", "s3.amazonaws.com"
CHECK_ENVIRONMENT = f"the keys, the region and, for another store than Amazon's, {ENDPOINT} in the environment"

_ENDPOINT = re.compile(r"(https?)://((?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?)/?", re.ASCII)


def find_objects(source: WrittenSource, needed: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The addresses of the files that a source names, sorted; refuses a pattern without files.

    A plain address is taken as it stands, because keys that may read a file need not be allowed to list a bucket.

    Args:
        source: as written, which is what messages show; it carries what the environment gave.
        needed: addresses and globs that a period needs instead; empty for the source itself.
    """
    return tuple(sorted({file for pattern in needed or (source.resolved,) for file in _object_names(source, pattern)}))


def _object_names(source: WrittenSource, pattern: str) -> tuple[str, ...]:
    if not glob.has_magic(pattern):
        return (pattern,)
    with closing(duckdb.connect(config=dict(NOTHING_INSTALLED))) as connection:
        reach(connection, source)
        problem = f"cannot be listed. Check the bucket's name, {CHECK_ENVIRONMENT}, and whether the keys may list it."
        rows = query_rows(connection, source, problem, "SELECT file FROM glob($pattern)", {"pattern": pattern})
    if not rows:
        raise SourceRefused(source, "no such file in the object store. Check `source`.")
    files = sorted(file for (file,) in rows)
    for address in files:
        if not WrittenSource(address).is_object or glob.has_magic(address) or not address.isprintable():
            raise SourceRefused(
                source,
                "finds a file whose name cannot be printed, or has one of the characters * ? [ \\, or nothing or only "
                "dots between two slashes; rename the file",
            )
    return tuple(files)


def reach(connection: duckdb.DuckDBPyConnection, source: WrittenSource) -> None:
    """Makes the source's bucket readable, while settings may still be changed; no message shows any of the keys.

    Args:
        connection: with `NOTHING_INSTALLED` among its settings.
    """
    secret = _secret(os.environ, source)
    load(connection, EXTENSION, source, ", or copy the files here first")

    def prepare() -> None:
        connection.execute("SET allow_persistent_secrets = false")
        settings = connection.execute("SELECT name FROM duckdb_settings()").fetchall()
        for (name,) in settings:
            if name.startswith("s3_"):
                connection.execute(f"RESET {identifier(name)}")
            # One of DuckDB's two HTTP clients takes any certificate unless it is told not to.
            elif name.endswith("_cert_verification"):
                connection.execute(f"SET {identifier(name)} = true")
        connection.execute(secret)

    withheld(source, f"cannot be reached. Check {CHECK_ENVIRONMENT}.", prepare)


def open_objects(
    connection: duckdb.DuckDBPyConnection,
    addresses: tuple[str, ...],
    source: WrittenSource,
    hive: bool = False,
    numbers: tuple[str, ...] = (),
) -> OpenedSource:
    """The columns of Parquet files in an object store; no record is read.

    What the environment gave of the source is in no message: files are then called as the source is written.

    Args:
        addresses: sorted, at least one.
        hive: whether folders called `column=value` give columns.
        numbers: as in `open_parquet`.
    """
    plain = source.resolved == str(source)
    called = {address: without_values(address) if plain else str(source) for address in addresses}
    folders = folder_columns(tuple(map(PurePosixPath, addresses)), source) if hive else ()
    problem = (
        "cannot be opened: no such file, keys that may not read it, no answer from the store, or no readable Parquet "
        f"file. Check `source`, and {CHECK_ENVIRONMENT}."
    )
    return open_parquet(connection, called, source, folders, problem, numbers)


def _secret(environment: Mapping[str, str], source: WrittenSource) -> str:
    """The statement that makes the keys known, for the source's bucket alone; without keys, as anybody."""
    given = {part: environment.get(name, "") for part, name in KEYS.items()}
    if bool(given["KEY_ID"]) != bool(given["SECRET"]):
        raise SourceRefused(
            source, f"needs {KEYS['KEY_ID']} and {KEYS['SECRET']} in the environment, both or, for open data, neither"
        )
    address = environment.get(ENDPOINT, "")
    endpoint = _ENDPOINT.fullmatch(address)
    if address and endpoint is None:
        raise SourceRefused(
            source, f"needs {ENDPOINT} as `https://host` or `https://host:port`, without a path and without a password"
        )
    bucket = source.bucket
    parts = {
        **(given if given["KEY_ID"] else {}),
        "REGION": next((environment[name] for name in REGIONS if environment.get(name)), USUAL_REGION),
        "ENDPOINT": endpoint[2] if endpoint else USUAL_ENDPOINT,
        # A certificate for *.s3.amazonaws.com does not cover a bucket with dots as a host.
        "URL_STYLE": "path" if endpoint or "." in bucket else "vhost",
        "SCOPE": f"s3://{bucket}/",
    }
    said = ", ".join(f"{part} {literal(text)}" for part, text in parts.items() if text)
    ssl = str(endpoint is None or endpoint[1] == "https").lower()
    return f"CREATE TEMPORARY SECRET office (TYPE s3, PROVIDER config, {said}, USE_SSL {ssl})"
