"""The page on ledgers on servers: its backup is made and put back on servers of PostgreSQL that are then lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import pytest
from database_server import Server, programs, running_server
from docs.pages import PLAIN, PROJECT, Block, PageIsWrong, Reader, blocks_of

pytestmark = pytest.mark.outside

PAGE = (PROJECT / "docs" / "how-to" / "several-machines.md").read_text(encoding="utf-8")
RESTORED = "## Back up and restore"
WEEKS = ("2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26")
SPEC = """type: dphist_pipeline.HistogramRelease
attributes: {release: weekly_wards, source: admissions.csv, privacy_unit: patient, max_rows_per_unit: 3,
  neighbours: add_remove, epsilon: 0.5, account: health, mechanism: geometric, period: week,
  period_column: admitted_on, period_format: iso, axes: [{column: ward, values: [surgery, medicine], other: true}]}
"""


class TwoServers(Reader):
    """Somebody who follows the page with a server for the ledger and one for the witness.

    Args:
        home: an empty folder.
        servers: by the names that the page gives them.
    """

    def __init__(self, home: Path, servers: dict[str, Server]) -> None:
        super().__init__(home)
        self.servers = servers
        self.environment |= {
            "PATH": f"{self.environment['PATH']}{os.pathsep}{programs()}",
            "PGUSER": "postgres",
            **self.addresses("dphist_owner"),
        }

    def addresses(self, user: str) -> dict[str, str]:
        """Where ledger and witness are, for a user of both servers."""
        return {f"DPHIST_{name.upper()}": server.address(name, user) for name, server in self.servers.items()}

    def run(self, script: str, code: int = 0, user: str = "dphist_owner") -> str:
        """Runs a script of the page on these servers, as one of their users."""
        for name, server in self.servers.items():
            script = script.replace(f"@{name}.office.example/{name}", f"@/{name}?host={server.folder}")
            script = script.replace(f"{name}.office.example", str(server.folder))
        self.environment |= self.addresses(user)
        together = "\\\n" in script or "export" in script  # lines that hand something on to the next one
        done, said = 0, ""
        for part in [script] if together else script.splitlines():
            with mock.patch.dict(os.environ, self.environment):  # a plain command of ours runs in this process
                done, more = self._command(part) if PLAIN.fullmatch(f"{part}\n") else self._shell(part)
            said += more
            if done:
                break
        if done != code:
            raise PageIsWrong(Block("several-machines.md", "bash", script, None, None), f"exit code {done}\n{said}")
        return said

    def release(self, week: str, code: int = 0) -> str:
        return self.run(f"dphist release weekly_wards.yaml --period {week}", code, "dphist_charges")

    def lose(self, name: str) -> None:
        """Puts a new, empty server into the place of one."""
        server = self.servers[name]
        server.stop()
        shutil.rmtree(server.folder / "data")
        server.start()


def block(after: str, holding: str) -> str:
    """The text of the first block below a heading that holds a word."""
    return next(one.text for one in blocks_of(PAGE[PAGE.index(after) :], "page") if holding in one.text)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[TwoServers]:
    """A reader with ledger and witness on two servers, with roles; one week is released, and all is dumped."""
    with ExitStack() as running:
        made = TwoServers(tmp_path, {name: running.enter_context(running_server()) for name in ("ledger", "witness")})
        running.enter_context(made.warm())
        rows = "".join(f"p{day}{number},surgery,2026-01-{day:02}\n" for day in range(5, 32) for number in range(30))
        (tmp_path / "admissions.csv").write_text(f"patient,ward,admitted_on\n{rows}")
        (tmp_path / "weekly_wards.yaml").write_text(SPEC)
        (tmp_path / "pyproject.toml").touch()
        databases = block("## What the database's", "CREATE DATABASE").partition("\n")[2]
        assert "pip" not in databases
        made.run(databases)
        made.run(block("## A new store", "dphist init"))
        made.run(
            "dphist ledger open health --privacy-unit patient --neighbours add_remove --total 4 --source admissions.csv"
        )
        both = block("## Users who charge", "ledger roles").splitlines()
        for (name, server), command in zip(made.servers.items(), both, strict=True):
            server.psql("postgres", "CREATE ROLE dphist_charges LOGIN", "CREATE ROLE dphist_decides LOGIN")
            made.run(f"{command} | psql -X -v ON_ERROR_STOP=1 -h {server.folder} -d {name}")
        made.release(WEEKS[0])
        made.run(block(RESTORED, "pg_dumpall"))
        yield made


def rights_are_kept(reader: TwoServers) -> None:
    """Whoever charges cannot decide, and nobody changes an entry."""
    refused = reader.run("dphist ledger raise health --total 9 --reason mine", 1, "dphist_charges")
    assert "ledger roles" in " ".join(refused.split())
    for user in ("dphist_charges", "dphist_decides"):
        reader.run(f"psql -h ledger.office.example -U {user} -d ledger -c 'DELETE FROM ledger_entry'", 1)
    reader.run("dphist ledger raise health --total 9 --reason ours", 0, "dphist_decides")
    reader.run("dphist ledger verify")


def test_what_is_put_back_goes_on_or_is_refused_until_an_operator_adopts_it(reader: TwoServers) -> None:
    """One backup is put back three times; by the last time, two charges are younger than it."""
    reader.lose("ledger")
    assert "ledger" in reader.run("dphist doctor", 1)
    reader.run(block("### The ledger's server", "pg_restore"))
    assert "Already published" in reader.release(WEEKS[0])
    reader.release(WEEKS[1])
    rights_are_kept(reader)

    reader.lose("witness")
    reader.release(WEEKS[2], 1)
    reader.run(block("### The witness's server", "pg_restore"))
    reader.release(WEEKS[2])  # the witness learnt of the week before from the ledger

    reader.lose("ledger")
    reader.run(block("### The ledger's server", "pg_restore"), 1)
    for week in WEEKS[1:]:
        assert "store adopt" in " ".join(reader.release(week, 1).split())
    reader.run(block("### The ledger's server", "store adopt"))
    shown = reader.run("dphist ledger show health --json")
    assert '"spent": "3/2"' in shown, shown
    reader.release(WEEKS[3])
    reader.run(f"dphist release weekly_wards.yaml --period {WEEKS[1]} --revise --reason lost")
    rights_are_kept(reader)
