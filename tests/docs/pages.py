"""The fenced blocks of a page of the documentation, and a reader who runs them in order."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from docs.warm_program import warm_program
from office import ran

PROJECT = Path(__file__).resolve().parents[2]
RUN = ("bash", "csv", "python", "sql", "yaml")
FENCE = re.compile(
    r"(?:<!-- (?P<mark>not run|refused): (?P<reason>[^\n]+) -->\n+)?"
    r'^(?P<indent> *)```(?P<language>\w+)(?: title="(?P<title>[^"\n]+)")?\n(?P<text>.*?)^(?P=indent)```$',
    re.DOTALL | re.MULTILINE,
)
# Lines of `dphist …` in which a shell would find nothing to do but to take quotes off.
PLAIN = re.compile(r"dphist ([^'\"\n|&;<>$`\\*?~#]|'[^'\n]*'|\"[^\"\n$`\\]*\")+\n")
# Lines that a shell may run by themselves, since they hand nothing on to the next line but a folder.
ALONE = re.compile(r"(cp|mkdir|mv|sed|touch) [^\n\\$`<]*\n")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text and place, the file that it is shown as, and a mark before it."""

    place: str
    language: str
    text: str
    title: str | None
    mark: str | None


class PageIsWrong(AssertionError):
    """A block of a page did not do what the page says."""

    def __init__(self, block: Block, problem: str) -> None:
        super().__init__(f"{block.place}: {problem}\n{block.text}")


def blocks_of(text: str, name: str) -> list[Block]:
    """Every block of a page in a language that is run."""
    return [
        Block(
            f"{name}, line {text[: found.start('language')].count(chr(10)) + 1}",
            found["language"],
            textwrap.dedent(found["text"]),
            found["title"],
            found["mark"],
        )
        for found in FENCE.finditer(text)
        if found["language"] in RUN
    ]


class Reader:
    """Somebody who follows pages from top to bottom: one folder, one Python session, one DuckDB session a page.

    Args:
        home: an empty folder, the home of a user who has nothing yet.
    """

    def __init__(self, home: Path) -> None:
        self.home = self.folder = home
        self.here = home / ".here"
        programs = home / "bin"
        programs.mkdir()
        for name, module in {"dphist": "dphist_pipeline.cli.app", "dg": "dagster_dg_cli.cli"}.items():
            code = f"from {module} import main; main()"
            (programs / name).write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{code}' \"$@\"\n")
            (programs / name).chmod(0o755)
        (programs / "python").symlink_to(sys.executable)
        for folder in ("dphist_pipeline", "sql"):
            shutil.copytree(PROJECT / folder, home / "checkout" / folder)
        theirs = {name: value for name, value in os.environ.items() if not name.startswith(("DPHIST_", "DAGSTER_"))}
        self.environment = theirs | {
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_STATE_HOME": str(home / ".local" / "state"),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT),
            "DAGSTER_DISABLE_TELEMETRY": "1",
        }

    @contextmanager
    def warm(self) -> Iterator[None]:
        """Meanwhile, `dphist` starts warm where a shell calls it."""
        with warm_program(self.home / "bin" / "dphist"):
            yield

    def follow(self, text: str, name: str) -> None:
        """Runs a page.

        Raises:
            PageIsWrong: at the first block that fails, or that should be refused and is not.
        """
        python: dict[str, Any] = {"__name__": "__main__"}
        with duckdb.connect() as connection:
            for block in blocks_of(text, name):
                if block.mark != "not run":
                    self._run(block, python, connection)

    def _run(self, block: Block, python: dict[str, Any], connection: duckdb.DuckDBPyConnection) -> None:
        if block.title is not None:
            target = self.folder / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language == "bash":
            lines = block.text.splitlines(keepends=True)
            apart = all(PLAIN.fullmatch(line) or ALONE.fullmatch(line) for line in lines)
            self._commands(block, lines if apart else [block.text])
        elif block.language in ("csv", "yaml"):
            raise PageIsWrong(block, 'a file needs a title="FILE", or a mark that it is not run')
        else:
            self._in_this_process(block, python, connection)

    def _commands(self, block: Block, parts: list[str]) -> None:
        """Runs parts of a block until one fails."""
        for part in parts:
            here = PLAIN.fullmatch(part) and not (self.folder / "dphist_pipeline").exists()
            code, said = self._command(part) if here else self._shell(part)
            if code:
                break
        if code != (1 if block.mark == "refused" else 0):
            raise PageIsWrong(block, f"exit code {code}\n{said}")

    def _command(self, line: str) -> tuple[int, str]:
        """A plain command, in this process: a process of its own takes a second to import what it needs."""
        with chdir(self.folder):
            done = ran(*shlex.split(line)[1:])
        return done.code, done.out + done.err

    def _shell(self, text: str) -> tuple[int, str]:
        script = f"trap 'pwd > {self.here}' EXIT\n{text}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        self.folder = Path(self.here.read_text().strip())
        return done.returncode, done.stdout + done.stderr

    def _in_this_process(self, block: Block, python: dict[str, Any], connection: duckdb.DuckDBPyConnection) -> None:
        problem = None
        try:
            with chdir(self.folder):
                if block.language == "sql":
                    for statement in duckdb.extract_statements(block.text):
                        connection.execute(statement).fetchall()
                else:
                    exec(compile(block.text, block.place, "exec"), python)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        if (problem is not None) != (block.mark == "refused"):
            raise PageIsWrong(block, problem or "was not refused")
