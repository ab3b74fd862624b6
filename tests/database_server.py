"""A PostgreSQL server of the tests' own, where the machine has the programs for one."""

from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from requiring import missing

_NUMBERS = count()


@cache
def programs() -> Path | None:
    """The folder of PostgreSQL's programs; None where there is none."""
    found = [*sorted(Path("/usr/lib/postgresql").glob("*/bin")), Path(shutil.which("initdb") or "/nowhere").parent]
    needed = ("initdb", "pg_ctl", "psql", "postgres")
    return next((folder for folder in found if all((folder / name).exists() for name in needed)), None)


class Server:
    """A server that listens at a socket in its own folder, and trusts everybody there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Servers refuse to run as root.
        self._owner: dict[str, Any] = {"user": "postgres"} if os.geteuid() == 0 else {}

    def run(self, program: str, *words: str) -> str:
        """Runs one of PostgreSQL's programs, and gives what it printed."""
        command = [str(programs()) + f"/{program}", *words]
        # A server that inherits a pipe would keep it open: into a file.
        with tempfile.TemporaryFile() as printed:
            subprocess.run(command, check=True, stdout=printed, cwd="/", **self._owner)
            printed.seek(0)
            return printed.read().decode()

    def start(self, *settings: str) -> None:
        """Makes the server's files if there are none, and starts it."""
        data = str(self.folder / "data")
        if not (self.folder / "data").exists():
            if self._owner:
                shutil.chown(self.folder, "postgres")
            self.run("initdb", "-D", data, "-E", "UTF8", "--locale=C.UTF-8", "-A", "trust", "-U", "postgres", "-N")
        options = " ".join([f"-k {self.folder} -c listen_addresses=''", *(f"-c {one}" for one in settings)])
        self.run("pg_ctl", "-D", data, "-o", options, "-l", str(self.folder / "log"), "-w", "start")

    def stop(self) -> None:
        """Stops it at once, as a crash would."""
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")

    def psql(self, database: str, *statements: str, user: str = "postgres") -> str:
        """Runs statements, and gives the values that they print."""
        words = [word for statement in statements for word in ("-c", statement)]
        return self.run("psql", "-h", str(self.folder), "-U", user, "-d", database, "-XqAt", *words).strip()

    def new_database(self) -> str:
        """The address of a new, empty database."""
        name = f"office_{next(_NUMBERS)}"
        self.psql("postgres", f"CREATE DATABASE {name}")
        return self.address(name)

    def address(self, database: str, user: str = "postgres") -> str:
        """The address of a database of this server, as DPHIST_LEDGER takes it."""
        return f"postgresql://{user}@/{database}?host={self.folder}"

    @contextmanager
    def forwarded(self, cut: bytes = b"nothing is cut", after: bool = False) -> Iterator[int]:
        """A port of this machine that leads here until a client says `cut`; `after`: here it still arrives."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.settimeout(0.05)
            ended = threading.Event()

            def serve() -> None:
                while not ended.is_set():
                    with suppress(OSError):
                        client, _ = listening.accept()
                        self._carry(client, cut, after)

            thread = threading.Thread(target=serve)
            thread.start()
            try:
                yield listening.getsockname()[1]
            finally:
                ended.set()
                thread.join()

    def _carry(self, client: socket.socket, cut: bytes, after: bool) -> None:
        """Carries one connection, both ways, until an end of it is closed or it is cut."""
        with client, socket.socket(socket.AF_UNIX) as behind:
            behind.connect(str(self.folder / ".s.PGSQL.5432"))
            client.settimeout(None)
            while True:
                for end in select.select([client, behind], [], [])[0]:
                    said = end.recv(65536)
                    if end is client and cut in said:
                        if after:
                            behind.sendall(said)
                            behind.recv(65536)  # the server's answer, which the client never sees
                        return
                    if not said:
                        return
                    (behind if end is client else client).sendall(said)


@contextmanager
def running_server() -> Iterator[Server]:
    """A server of its own, stopped at the end; skips, saying so, where its programs or the driver are missing."""
    problem = "PostgreSQL's programs are not installed" if programs() is None else ""
    try:
        import psycopg  # noqa: F401
    except ModuleNotFoundError:
        problem = "the driver psycopg is not installed"
    if problem:
        missing("postgresql", problem)
    folder = Path(tempfile.mkdtemp(prefix="dphist_pg_"))
    folder.chmod(0o755)
    server = Server(folder)
    try:
        server.start()
        yield server
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
