"""Files in an object store as sources: the declared ones and nothing else, and keys that nobody sees."""

from __future__ import annotations

import importlib.util
import io
import os
import pickle
import socket
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from office import Office
from requiring import missing
from source_scenario import AGE, SECRET, WARD, counted, spec

from dphist_pipeline.confidential.cube import read_and_count
from dphist_pipeline.confidential.reading import _object_stores as object_stores
from dphist_pipeline.confidential.reading._object_stores import EXTENSION, find_objects
from dphist_pipeline.confidential.reading.source import SourceRefused
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.spec.mistakes import FromEnvironment, SpecError
from dphist_pipeline.spec.sources import Source

KEY, PASSWORD, TOKEN = "AKIAOFFICE", "s3cret/w'rd+", "t0ken=="
BUCKET = "office-records"
WHOLE = f"s3://{BUCKET}/admissions/*.parquet"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment that an office sets, with a store that is not there."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "DUCKDB_S3_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD)
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")


def has_extension() -> bool:
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        try:
            connection.execute(f"LOAD {EXTENSION}")
        except duckdb.Error:
            return False
    return True


def staged(declared: Any, tmp_path: Path) -> list[int]:
    run = tmp_path / "run"
    run.mkdir(exist_ok=True)
    return [int(count) for count in read_and_count(plan_of(declared, declared.period_named("all")), run)]


def refused(declared: Any, tmp_path: Path, *hidden: str) -> str:
    """What refuses a source: without keys, values of records, or anything else that is to be hidden."""
    with pytest.raises(SourceRefused) as caught:
        staged(declared, tmp_path)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    shown = str(caught.value) + repr(vars(caught.value)) + repr(pickle.dumps(caught.value))
    assert not [word for word in (KEY, PASSWORD, TOKEN, SECRET, *hidden) if word in shown]
    return str(caught.value)


@pytest.mark.parametrize("source", [WHOLE, f"s3://{BUCKET}/a.parquet", "s3://a.b-c/**/d=1/[a-c]*.PARQUET"])
def test_an_address_in_a_store_is_a_source_and_its_digest_is_what_was_written(tmp_path: Path, source: str):
    declared = spec(tmp_path, source=source)
    assert (declared.source, declared.source_format) == (source, "parquet")
    assert declared.as_json()["source"] == source
    written = FromEnvironment(source, "{{ env.RECORDS }}")
    hidden = spec(tmp_path, source=written)
    assert hidden.digest == spec(tmp_path, source=FromEnvironment("s3://elsewhere/b.parquet", written.written)).digest
    assert hidden.source == "{{ env.RECORDS }}" and "s3:" not in repr(hidden) + str(hidden.as_json())


def test_checking_a_spec_asks_no_store(office: Office, monkeypatch: pytest.MonkeyPatch):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{listening.getsockname()[1]}")
        office.write_spec(source=WHOLE)
        for more in ([], ["--explain"], ["--json"]):
            ran = office.run("check", office.folder / "spec.yaml", *more)
            assert ran.code == 0 and not [word for word in (KEY, PASSWORD, TOKEN) if word in ran.out + ran.err]
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()


def test_a_plain_address_is_not_listed_for():
    assert find_objects(Source(f"s3://{BUCKET}/a.parquet")) == (f"s3://{BUCKET}/a.parquet",)


@pytest.mark.skipif(has_extension(), reason="DuckDB's extension for object stores is installed")
@pytest.mark.parametrize("name", ["*.parquet", "a.parquet"])
def test_without_the_extension_a_store_is_refused_and_nothing_is_installed(tmp_path: Path, name: str):
    message = refused(spec(tmp_path, source=f"s3://{BUCKET}/{name}"), tmp_path)
    assert message.startswith(f"source s3://{BUCKET}/{name}: needs DuckDB's extension {EXTENSION} for version ")
    hidden = FromEnvironment(f"s3://{BUCKET}/{name}", "s3://{{ env.BUCKET }}/" + name)
    message = refused(spec(tmp_path, source=hidden), tmp_path, BUCKET)
    assert message.startswith("source s3://{{ env.BUCKET }}/" + name)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("AWS_ACCESS_KEY_ID", "", "needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, both or"),
        ("AWS_SECRET_ACCESS_KEY", "", "needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"),
        *(
            ("AWS_ENDPOINT_URL", value, "needs AWS_ENDPOINT_URL as `https://host` or `https://host:port`, without a")
            for value in ("store", "ftp://store", f"https://me:{SECRET}@store", "https://store/path", "https://a\n")
        ),
    ],
)
def test_an_environment_that_cannot_serve_is_refused_by_the_variable_s_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
):
    monkeypatch.setenv(name, value)
    assert says in refused(spec(tmp_path, source=WHOLE), tmp_path)


def test_keys_are_said_to_one_bucket_of_the_declared_store_alone():
    def said(source: str = WHOLE, **environment: str) -> str:
        return object_stores._secret(environment, Source(source))

    assert said() == (
        "CREATE TEMPORARY SECRET office (TYPE s3, PROVIDER config, REGION 'us-east-1', ENDPOINT 's3.amazonaws.com', "
        f"URL_STYLE 'vhost', SCOPE 's3://{BUCKET}/', USE_SSL true)"
    )
    assert "URL_STYLE 'path'" in said("s3://a.b/c.parquet") and "SCOPE 's3://a.b/'" in said("s3://a.b/c.parquet")
    assert "REGION 'here'" in said(AWS_REGION="here", AWS_DEFAULT_REGION="there")
    assert "REGION 'there'" in said(AWS_REGION="", AWS_DEFAULT_REGION="there")
    assert "TOKEN" not in said(AWS_SESSION_TOKEN=TOKEN)
    both = said(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=PASSWORD, AWS_SESSION_TOKEN=TOKEN)
    assert f"KEY_ID '{KEY}', SECRET 's3cret/w''rd+', SESSION_TOKEN '{TOKEN}', " in both
    plain = said(AWS_ENDPOINT_URL="http://[::1]:9000/")
    assert "ENDPOINT '[::1]:9000', URL_STYLE 'path'" in plain and "USE_SSL false" in plain
    assert "ENDPOINT 'store', URL_STYLE 'path'" in said(AWS_ENDPOINT_URL="https://store")
    assert "USE_SSL true" in said(AWS_ENDPOINT_URL="https://store")


TABLES: dict[str, pa.Table] = {
    "admissions/b.parquet": pa.table({"person": ["a", "b"], "age": [5, 15], "ward": ["surgery", None]}),
    "admissions/a b+%20é#.parquet": pa.table(
        {"ward": ["medicine", "surgery"], "person": [None, "d"], "age": pa.array([25, 25], pa.int8())}
    ),
    "admissions/ward=surgery/day=1/c.parquet": pa.table({"person": ["c", "c"], "age": [5, 35]}),
    "admissions/ward=medicine/day=1/d.parquet": pa.table({"person": [SECRET], "age": [5]}),
    "odd/what?.parquet": pa.table({"person": ["a"], "age": [5]}),
    "star/a*.parquet": pa.table({"person": ["a"], "age": [5]}),
    "empty/a//b.parquet": pa.table({"person": ["a"], "age": [5]}),
    "other/x.parquet": pa.table({"person": [SECRET], "age": [5]}),
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an object store of this test's own, with `TABLES` in it."""
    if not has_extension() or importlib.util.find_spec("moto") is None:
        problem = f"moto, or DuckDB's extension {EXTENSION} for DuckDB {duckdb.__version__}, is not installed"
        missing("duckdb-httpfs", problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from moto.server import ThreadedMotoServer
    made = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    made.start()
    host, port = made.get_host_and_port()
    address = f"http://{host}:{port}"
    try:
        put(address, BUCKET)
        put(address, "another-bucket")
        put(address, "another-bucket/x.parquet", parquet(TABLES["other/x.parquet"]))
        for name, table in TABLES.items():
            put(address, f"{BUCKET}/{name}", parquet(table))
        put(address, f"{BUCKET}/damaged/a.parquet", parquet(TABLES["other/x.parquet"])[:-9] + SECRET.encode())
        yield address
    finally:
        made.stop()


@pytest.fixture
def store(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """As `server`, and named in the environment."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    return server


def put(address: str, path: str, content: bytes = b"") -> None:
    signed = {"Authorization": "AWS4-HMAC-SHA256 Credential=made/20260101/us-east-1/s3/aws4_request"}
    headers = {**signed, "Content-Type": "application/octet-stream"}
    request = urllib.request.Request(f"{address}/{quote(path)}", data=content, method="PUT", headers=headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        assert answer.status == 200


def parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("admissions/*.parquet", {"axes": [AGE, WARD]}),
        ("admissions/b.parquet", {"axes": [AGE, WARD]}),
        ("admissions/[ab]*.parquet", {}),
        ("admissions/a b+%20é#.parquet", {}),
        ("admissions/**/*.parquet", {"unit_normalise": ["lower"]}),
        ("admissions/*/*/*.parquet", {"hive": True, "axes": [AGE, WARD]}),
    ],
)
def test_files_in_a_store_are_counted_as_files_here(store: str, tmp_path: Path, source: str, changes: dict[str, Any]):
    counts = staged(spec(tmp_path, source=f"s3://{BUCKET}/{source}", **changes), tmp_path)
    assert counts == counted(TABLES, source=source, **changes) and sum(counts) > 0


def test_files_are_listed_sorted(store: str):
    found = find_objects(Source(f"s3://{BUCKET}/admissions/**/*.parquet"))
    assert found == tuple(sorted(f"s3://{BUCKET}/{name}" for name in TABLES if name.startswith("admissions/")))


MISTAKES = [
    ("nothing/*.parquet", "no such file in the object store"),
    ("nothing/a.parquet", "cannot be opened: no such file, keys that may not read it"),
    ("damaged/*.parquet", "cannot be opened: no such file, keys that may not read it"),
    ("odd/*.parquet", "finds a file whose name"),
    ("star/*.parquet", "finds a file whose name"),
    ("empty/**/*.parquet", "finds a file whose name"),
]


@pytest.mark.parametrize(("name", "says"), MISTAKES)
def test_files_that_cannot_be_read_get_one_clear_message(store: str, tmp_path: Path, name: str, says: str):
    message = refused(spec(tmp_path, source=f"s3://{BUCKET}/{name}"), tmp_path)
    assert says in message and f"s3://{BUCKET}/{name.partition('*')[0]}" in message
    hidden = FromEnvironment(f"s3://{BUCKET}/{name}", "s3://{{ env.BUCKET }}/" + name)
    message = refused(spec(tmp_path, source=hidden), tmp_path, BUCKET)
    assert message.startswith("source s3://{{ env.BUCKET }}/" + name) and says in message


def test_without_keys_or_with_a_wrong_bucket_a_store_is_refused(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert "cannot be listed" in refused(spec(tmp_path, source="s3://no-such-bucket/*.parquet"), tmp_path)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert "keys that may not read it" in refused(spec(tmp_path, source=WHOLE), tmp_path)


def test_the_session_that_reads_can_open_the_files_that_were_found_and_nothing_else(store: str, tmp_path: Path):
    from dphist_pipeline.confidential.reading.ingest import opened_source

    declared = spec(tmp_path, source=WHOLE)
    found = find_objects(declared.source)
    with opened_source(plan_of(declared, declared.period_named("all")).source, tmp_path) as (connection, _):
        assert connection.execute("SELECT count(*) FROM read_parquet($files)", {"files": list(found)}).fetchall() == [
            (4,)
        ]
        for address in (
            f"s3://{BUCKET}/other/x.parquet",
            f"s3://{BUCKET}/admissions/../other/x.parquet",
            "s3://another-bucket/x.parquet",
            f"s3a://{BUCKET}/admissions/b.parquet",
            f"{found[0]}?s3_endpoint=elsewhere",
            WHOLE,
            f"{store}/{BUCKET}/other/x.parquet",
            "/etc/hostname",
        ):
            for function in ("read_parquet", "read_blob", "glob"):
                with pytest.raises(duckdb.PermissionException):
                    connection.execute(f"SELECT * FROM {function}($file)", {"file": address}).fetchall()
        for statement in (
            "SET s3_endpoint = 'elsewhere'",
            "SET allow_unredacted_secrets = true",
            "SELECT * FROM duckdb_secrets(redact = false)",
            "INSTALL aws",
            f"COPY (SELECT 1) TO 's3://{BUCKET}/admissions/z.parquet'",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(statement)


def test_what_the_extension_takes_from_the_environment_itself_is_put_back(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from dphist_pipeline.confidential.reading.ingest import opened_source

    monkeypatch.setenv("DUCKDB_S3_ENDPOINT", "elsewhere.invalid")
    declared = spec(tmp_path, source=WHOLE)
    with opened_source(plan_of(declared, declared.period_named("all")).source, tmp_path) as (connection, _):
        settings = dict(connection.execute("SELECT name, value FROM duckdb_settings()").fetchall())
        secrets = connection.execute("FROM duckdb_secrets()").fetchall()
    taken = {name: value for name, value in settings.items() if name.startswith("s3_") and value}
    assert {"s3_access_key_id", "s3_secret_access_key", "s3_session_token"} <= {*settings} - {*taken}
    shown = repr(settings) + repr(secrets)
    assert "elsewhere" not in shown and PASSWORD not in shown and TOKEN not in shown
    verifying = [value for name, value in settings.items() if name.endswith("_cert_verification")]
    assert verifying and set(verifying) == {"true"}


def test_secrets_that_duckdb_keeps_on_disk_are_not_used(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not even one for a longer part of the address, which DuckDB would prefer."""
    installed = Path(os.environ.get("HOME", "/")) / ".duckdb" / "extensions"
    (tmp_path / ".duckdb").mkdir()
    (tmp_path / ".duckdb" / "extensions").symlink_to(installed)
    monkeypatch.setenv("HOME", str(tmp_path))
    with duckdb.connect() as connection:
        connection.execute(f"LOAD {EXTENSION}")
        connection.execute(
            "CREATE PERSISTENT SECRET kept (TYPE s3, KEY_ID 'x', SECRET 'y', ENDPOINT '127.0.0.1:9', USE_SSL false, "
            f"SCOPE 's3://{BUCKET}/admissions/')"
        )
    assert list((tmp_path / ".duckdb" / "stored_secrets").iterdir())
    assert len(find_objects(Source(WHOLE))) == 2
    assert sum(staged(spec(tmp_path, source=WHOLE), tmp_path)) == 3


def test_a_release_from_a_store_leaves_no_key_anywhere(
    store: str, office: Office, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("BUCKET", BUCKET)
    source = "s3://{{ env.BUCKET }}/admissions/*.parquet"
    office.opened().write_spec(source=source, privacy_unit="person")
    office.run("ledger", "open", "people", "--privacy-unit", "person", "--neighbours", "add_remove", "--total", "10")
    office.write_spec(source=source, privacy_unit="person", account="people")
    first, again = office.released(), office.released()
    written = b"".join(path.read_bytes() for path in sorted(office.folder.rglob("*")) if path.is_file())
    everything = written + "".join([first.out, first.err, again.out, again.err, *capfd.readouterr()]).encode()
    hidden = (KEY, PASSWORD, TOKEN, BUCKET, store.partition("//")[2])
    assert not [word for word in hidden if word.encode() in everything]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        *(
            (address, "is an address; only files of this machine")
            for address in ("gs://b/x.parquet", "S3://b/x.parquet")
        ),
        *(
            (f"{kind}://office/x.parquet", "copy the files here first, or mount their store")
            for kind in ("http", "https", "s3a", "file", "gcs", "az", "hf")
        ),
        *(
            (f"s3://{rest}", "must be Parquet files in an object store, as `s3://bucket/path/*.parquet`")
            for rest in (
                *("", "bucket", "bucket/", "bucket/a.csv", "bucket/a.duckdb", "bucket//a.parquet", "Bucket/a.parquet"),
                *("bucket/../a.parquet", "bucket/./a.parquet", "bu*/a.parquet", "b/a.parquet", "bucket\\a.parquet"),
                *(f"{KEY}:{SECRET}@bucket/a.parquet", f"bucket/?s3_secret_access_key={SECRET}&x=/.parquet"),
            )
        ),
    ],
)
def test_other_addresses_are_refused_with_one_clear_message(tmp_path: Path, source: str, says: str):
    for given in (source, FromEnvironment(source, "{{ env.SOURCE }}")):
        with pytest.raises(SpecError) as caught:
            spec(tmp_path, source=given)
        assert [place for place, _ in caught.value.problems] == ["attributes.source"]
        assert says in str(caught.value) and SECRET not in str(caught.value) and KEY not in str(caught.value)
