"""Makes the archive of a store that every later version must be able to use: tests/golden/store.tar.xz.

    .venv/bin/python tests/golden/make_store.py

That is all. Run it again only where the archive shall hold more than it does: one by an older version proves more than
one by a newer version. It works in /tmp/office, which must not exist, under the host name `office` and as the user
`operator`, so that nothing of the machine that it runs on is in the archive; it looks for that in every file. The
operator's key is made for the archive, lies in it, and is of no other use.
"""

from __future__ import annotations

import getpass
import io
import json
import lzma
import os
import shutil
import socket
import sys
import tarfile
from pathlib import Path
from typing import Any
from unittest import mock

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "tests"))

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from golden.kept_store import ANSWERS, ARCHIVE, KEY, PERIODS, RELEASED, STORE, WITNESS, KeptStore  # noqa: E402

FOLDER = Path("/tmp/office")
MOST, WRITTEN_AT = 2**20, 1_767_225_600  # bytes; 2026-01-01
LEFT_OUT = {"catalog.duckdb", "state"}  # built anew
AGE = {"column": "age", "start": 0, "stop": 100, "width": 25}
SEX = {"column": "sex", "values": ["f", "m"], "other": True}
WARD = {"column": "ward", "values": ["surgery", "medicine"], "other": True}
COMMON: dict[str, Any] = {
    "source": "data/*.parquet",
    "privacy_unit": "patient",
    "max_rows_per_unit": 2,
    "neighbours": "add_remove",
    "epsilon": "1/2",
    "account": "health",
    "mechanism": "geometric",
    "axes": [AGE, WARD],
}
RELEASES: dict[str, dict[str, Any]] = {
    "weekly": {"mechanism": "dpcube", "period": "week", "period_column": "day", "release_delay_days": 0},
    "family": {"mechanism": "tables", "axes": [AGE, SEX, WARD], "tables": {"list": [["age", "sex"]], "all": 1}},
    "looked_at": {"quality": {"share": "1/10", "rows": 4, "by": ["ward"]}},
    "waiting": {"publish": "manual"},
    "mistaken": {},
}
COLLECTION = {
    "collection": "ages",
    "value": "age",
    "start": 0,
    "stop": 100,
    "consumers": [{"name": "city", "epsilon": 2, "width": 25}, {"name": "state", "epsilon": 3, "edges": [0, 65, 100]}],
    "protocol": "chp",
    "encoding": "symmetric",
}
ABOUT = """A store for the tests of dphist: invented records, a witness, and an operator's key.
The key was made for this archive, lies in public, and protects nothing: use it nowhere else.
"""


def main() -> None:
    """Makes the store, looks for traces of this machine, and packs it."""
    if FOLDER.exists():
        sys.exit(f"{FOLDER} exists: move it away. Nothing was made.")
    host, user = socket.gethostname(), getpass.getuser()
    os.umask(0o022)
    FOLDER.mkdir(mode=0o700)
    try:
        with mock.patch("socket.gethostname", lambda: "office"), mock.patch("getpass.getuser", lambda: "operator"):
            made = filled()
        packed = archive_of(made.folder, [host, user, str(PROJECT), str(Path.home()), sys.prefix])
    finally:
        shutil.rmtree(FOLDER)
    if len(packed) > MOST:
        sys.exit(f"the archive has {len(packed):,} bytes, more than {MOST:,}; it was not written")
    ARCHIVE.write_bytes(packed)
    print(f"{ARCHIVE.relative_to(PROJECT)}: {len(packed):,} bytes")


def filled() -> KeptStore:
    """An office that has released, revised, held back, withdrawn and collected."""
    made = KeptStore(FOLDER)
    for folder in ("data", "reports", Path(WITNESS).parent, Path(KEY).parent):
        (FOLDER / folder).mkdir(mode=0o700)
    (FOLDER / "pyproject.toml").touch()
    (FOLDER / "README.txt").write_text(ABOUT)
    write_records()
    for name, changes in RELEASES.items():
        write_spec(name, "HistogramRelease", {"release": name, **COMMON, **changes})
    write_spec("ages", "LocalCollection", COLLECTION)
    made.run("init", "--store", STORE)
    made.run("ledger", "open", "health", "--privacy-unit", "patient", "--neighbours", "add_remove", "--total", "10")
    made.run("ledger", "allow", "health", "--source", "data/*.parquet")
    for name, period in [*RELEASED, ("waiting", "all"), ("mistaken", "all")]:
        made.released(name, period)
    made.released("weekly", PERIODS[0], "--revise", "--reason", "late records")
    made.run("withdraw", "mistaken", "all", "--reason", "the wrong hospital")
    names = ["--column", "age", "--contributor", "who", "--record", "kept", "--output", "reports/ages.parquet"]
    made.run("local", "encode", "ages.yaml", "people.csv", *names, "--limit", "5")
    made.run("local", "publish", "ages.yaml", "reports/ages.parquet")
    made.run("ledger", "verify")
    (FOLDER / ANSWERS).write_text(json.dumps(made.answers(), indent=1) + "\n")
    return made


def write_records() -> None:
    """Invented records, the same every time."""
    draws, rows = np.random.Generator(np.random.PCG64(36)), 600
    admissions = {
        "patient": [f"p{number}" for number in draws.integers(0, 400, rows)],
        "age": draws.integers(0, 100, rows).astype(float).tolist(),
        "sex": draws.choice(["f", "m"], rows).tolist(),
        "ward": draws.choice(["surgery", "medicine", "else"], rows).tolist(),
        "day": [f"2026-01-{5 + number:02}" for number in draws.integers(0, 14, rows)],
    }
    pq.write_table(pa.table(admissions), FOLDER / "data" / "admissions.parquet")
    people = [f"p{number},{number % 100}\n" for number in range(300)]
    (FOLDER / "people.csv").write_text("".join(["who,age\n", *people]))


def write_spec(name: str, kind: str, attributes: dict[str, Any]) -> None:
    """A spec as JSON, which is YAML."""
    (FOLDER / f"{name}.yaml").write_text(f"type: dphist_pipeline.{kind}\nattributes: {json.dumps(attributes)}\n")


def archive_of(folder: Path, traces: list[str]) -> bytes:
    """The folder as a compressed archive whose order, owners and times say nothing; refuses traces of a machine.

    Args:
        folder: to be packed.
        traces: names and places of this machine; `root` as a name and `/` as a home are none.
    """
    sought = [trace.encode() for trace in traces if trace not in ("root", "/", "office", "operator")]
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder)
            if LEFT_OUT & {*name.parts}:
                continue
            entry = tarfile.TarInfo(str(name))
            entry.mode, entry.mtime = path.stat().st_mode & 0o777, WRITTEN_AT
            written = b"" if path.is_dir() else path.read_bytes()
            found = [trace for trace in sought if trace in written or trace in str(name).encode()]
            if found:
                sys.exit(f"{name} holds {found[0]!r}, a trace of this machine; nothing was written")
            entry.size, entry.type = len(written), tarfile.DIRTYPE if path.is_dir() else tarfile.REGTYPE
            archive.addfile(entry, None if path.is_dir() else io.BytesIO(written))
    return lzma.compress(content.getvalue(), preset=9 | lzma.PRESET_EXTREME)


if __name__ == "__main__":
    main()
