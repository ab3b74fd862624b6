"""An office that attackers write specs for, and all that must hold after each of their specs.

Planted are unique tokens and exact counts of five digits. The noise of counts is large and random, so that nothing
released equals an exact count by chance. A count that is found is a leak only where the office's twin, whose counts
are others, shows one of its own in the same place: sizes of files and seconds have five digits, too.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import canary
import numpy as np
from attacked_noise import at, outcome, sensitivity_of, sensitivity_of_rows
from attacked_records import NUMBER, WHALE_ROWS, write_records
from office import Office, Ran
from spec_grammar import ALLOWED_QUERY, ALLOWED_QUERY_FILE, CLINIC, HEALTH, Attack

from dphist_pipeline.answering import catalogue_tables
from dphist_pipeline.answering.catalogue import build_catalogue
from dphist_pipeline.confidential import cube
from dphist_pipeline.confidential.journal import Journal
from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.confidential.reading import ingest
from dphist_pipeline.releasing import stages
from dphist_pipeline.releasing.store import Store

TOKENS = ("zyx", str(NUMBER))
# Records of a unit each, by ward; the last of them name no unit.
COUNTS = {
    "data/health.parquet": (21_611, 15_847, 11_299, 10_973, 10_159),
    "data/clinic.csv": (12_347, 10_459, 0, 0, 0),
    "data/secret.parquet": (13_577, 0, 0, 0, 0),
}
TWIN_COUNTS = {name: tuple(count and count + 1_117 for count in counts) for name, counts in COUNTS.items()}
TOTALS = {"health": "100000", "clinic": "300"}
# As the operator decided: format, unit, forms, quote, delimiter, and which file that is.
READINGS = {
    "health": ("parquet", ("patient",), (), "", "health.parquet"),
    "clinic": ("csv", ("person",), ("trim", "lower"), '"', "clinic.csv"),
}
KEY = bytes(range(32))
Said = dict[str, str]


@dataclass
class Seen:
    """What one run of `dphist release` did behind the walls.

    Attributes:
        plans: what was read.
        exact: counts that were loaded.
        draws: how often each step of each charge was drawn.
        questions: what doors were asked, by charge and step.
    """

    plans: list[CountingPlan] = field(default_factory=list)
    exact: list[np.ndarray] = field(default_factory=list)
    draws: Counter[tuple[str, str]] = field(default_factory=Counter)
    questions: dict[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)


class AttackedOffice:
    """The office, records of its neighbour, and its twin, which is made when it is needed.

    Args:
        folder: empty.
        counts: that are planted.
    """

    def __init__(self, folder: Path, counts: Mapping[str, tuple[int, ...]] = COUNTS) -> None:
        self.folder, self.office, self.neighbour = folder, Office(folder / "office"), folder / "neighbour"
        self._counts, self._twin = counts, None if counts is COUNTS else self
        self.sums = frozenset(
            sum(some) + more
            for more in (0, WHALE_ROWS)
            for per_ward in counts.values()
            for size in range(1, 6)
            for some in itertools.combinations([count for count in per_ward if count], size)
        )
        write_records(self.office.folder, counts, ("here", "here"))
        write_records(self.neighbour, counts, ("", "others"))
        self._write_public_files()
        self._decide()
        self._write_links()
        shutil.copytree(self.office.store, folder / "start")
        shutil.copy(self.office.witness, folder / "start.witness")
        self._files: dict[Path, tuple[int, int]] = {}
        self._new_files()
        self.seen = Seen()

    def _write_public_files(self) -> None:
        for name, content in {
            "codes/wards.csv": "code,title,site\nsurgery,Surgery,all\nmedicine,,all\nguessed,Other,all\n",
            "codes/tree.csv": "code,above\nsurgery,all\nmedicine,all\nall,\n",
            "codes/broken.csv": 'code,title\na,"b\nb\n',
            ALLOWED_QUERY_FILE: ALLOWED_QUERY,
        }.items():
            (self.office.folder / name).parent.mkdir(exist_ok=True)
            (self.office.folder / name).write_text(content)

    def _decide(self) -> None:
        """All that the operator ever decides."""
        done: list[list[str]] = [["init"]]
        for account in (HEALTH, CLINIC):
            name, unit = str(account["account"]), str(account["privacy_unit"])
            words = ["ledger", "open", name, "--privacy-unit", unit, "--neighbours", str(account["neighbours"])]
            words += ["--source", str(account["source"]), "--total", TOTALS[name]]
            done.append(
                [*words, *(["--csv-quote", '"', "--unit-normalise", "trim,lower"] if account is CLINIC else [])]
            )
        done.append(["ledger", "allow", "health", "--query", ALLOWED_QUERY_FILE, "--reason", "for a test"])
        done.append(["ledger", "allow", "--code-lists", "codes"])
        with at(self.office.folder):
            for words in done:
                ran = self.office.run(*words)
                assert ran.code == 0, (words, ran.err)

    def _write_links(self) -> None:
        """Links that appear once folders were declared public; no operator could declare them so."""
        (self.office.folder / "links").mkdir()
        for name, target in {
            "data/link.parquet": "secret.parquet",
            "links/health.parquet": "../data/health.parquet",
            "codes/link.csv": "../data/clinic.csv",
            "codes/link": "../data",
            "sql/link.sql": "../data/clinic.csv",
        }.items():
            (self.office.folder / name).symlink_to(target)
        (self.office.folder / "codes/hard.csv").hardlink_to(self.office.folder / "data/clinic.csv")

    def renew(self) -> None:
        """Puts store and witness back as they were after the decisions, so that ledgers stay short."""
        shutil.rmtree(self.office.store)
        shutil.copytree(self.folder / "start", self.office.store)
        shutil.copy(self.folder / "start.witness", self.office.witness)
        self._new_files()

    @property
    def twin(self) -> AttackedOffice:
        """An office with other counts."""
        if self._twin is None:
            self._twin = AttackedOffice(self.folder / "twin", TWIN_COUNTS)
        return self._twin

    # What attackers do.

    def write(self, attack: Attack) -> None:
        """Writes the attacker's files."""
        attributes = json.dumps(attack.spec, ensure_ascii=False)
        (self.office.folder / "spec.yaml").write_text(
            f"type: dphist_pipeline.HistogramRelease\nattributes: {attributes}\n"
        )
        (self.office.folder / "sql/query.sql").write_text(attack.query)

    def tried(
        self, attack: Attack, also: Sequence[tuple[str, ...]] = (), again: bool = True, whole: bool = True
    ) -> Tried:
        """Runs commands on an attack, and tells what is wrong after it.

        Args:
            attack: see there.
            also: more commands, with their options after the spec.
            again: whether what was released is released again, which is a replay.
            whole: whether the other commands run though `check` refuses the spec, which each of them loads first.
        """
        self.write(attack)
        spec, told = self.office.folder / "spec.yaml", list[logging.LogRecord]()
        handler = logging.Handler()
        handler.emit = told.append  # type: ignore[method-assign]
        logging.getLogger().addHandler(handler)
        before = self.charges()
        try:
            ran, self.seen = {"check": self.office.run("check", spec)}, Seen()
            if whole or not ran["check"].code:
                for name, *more in also:
                    ran[" ".join((name, *more))] = self.office.run(name, spec, *more)
                self.seen = Seen()
                with self._watched():
                    ran["release"] = self.office.release(*attack.words)
                    if ran["release"].code == 0 and again:
                        ran["release again"] = self.office.release("--json", *attack.words)
            seen = self.seen
        finally:
            logging.getLogger().removeHandler(handler)
        said = {
            f"{place} of {name}": text
            for name, done in ran.items()
            for place, text in (("out", done.out), ("err", done.err))
        }
        said["log"] = "\n".join(f"{record.getMessage()} {record.exc_text}" for record in told)
        made = Tried(ran, outcome(ran), said | self._new_texts())
        made.findings += [
            f"{where}: something unexpected failed"
            for where, text in said.items()
            if "something unexpected" in text or "Traceback" in text
        ]
        made.findings += [
            f"{where}: the token {token}" for where, text in made.texts.items() for token in TOKENS if token in text
        ]
        made.findings += self._accounting(attack, made, before, seen)
        made.findings += self._wrong_readings(attack, seen)
        counts = self._counts_in(made)
        if counts and not made.findings and self._twin is not self:
            self.twin.renew()
            with at(self.twin.office.folder):
                there = self.twin._counts_in(self.twin.tried(attack, also, again, whole))
            counts = {place: count for place, count in counts.items() if place in there}
            made.findings += [f"{place}: the exact count {count}" for place, count in counts.items()]
        return made

    def _counts_in(self, made: Tried) -> dict[str, int]:
        found = {}
        for place, text in made.texts.items():
            bare = re.sub(r"(?<=\d)[,_ ](?=\d{3}(?!\d))", "", text)
            numbers = {int(digits) for digits in re.findall(r"(?<![0-9A-Za-z])(?<!\d\.)\d{5,7}(?![0-9A-Za-z])", bare)}
            found |= {place: min(numbers & self.sums)} if numbers & self.sums else {}
        return found

    def _new_texts(self) -> Said:
        """The content of all files that are new or changed since the last call, but for records and the attacker's."""
        found = {}
        for path in self._new_files():
            place = path.relative_to(self.office.folder)
            found[str(place)] = "\n".join([str(place), *canary._texts(path)])
        return found

    def _new_files(self) -> list[Path]:
        found = []
        for root, _, names in os.walk(self.office.folder):
            for path in (Path(root, name) for name in names):
                place = path.relative_to(self.office.folder).parts
                if place[0] in ("data", "codes", "sql", "links", "spec.yaml") or path.name.startswith("ledger."):
                    continue  # the ledger is looked at in the end
                if place[:3] == ("store", "confidential", "journal"):
                    continue
                state = path.stat()
                if self._files.get(path) != (state.st_mtime_ns, state.st_size):
                    self._files[path] = (state.st_mtime_ns, state.st_size)
                    found.append(path)
        return sorted(found)

    # What must hold.

    def charges(self) -> list[tuple[str, Fraction]]:
        """Account and epsilon of every charge in the ledger, read without our own code."""
        bodies = [(row[2], json.loads(row[6])) for row in self.office.entries() if row[1] == "charged"]
        return [(str(account), Fraction(body["epsilon"])) for account, body in bodies]

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Keeps what is read, counted and drawn."""
        seen, read, answer = self.seen, stages.read_cube, Journal.answer
        stage: Callable[..., Path] = ingest.stage_rows

        def staged(plan: CountingPlan, folder: Path) -> Path:
            seen.plans.append(plan)
            return stage(plan, folder)

        def counted(path: Path) -> np.ndarray:
            seen.exact.append(read(path))
            return seen.exact[-1]

        def answered(journal: Journal, step: str, question: Mapping[str, str], draw: Callable[[], Any]) -> Any:
            key = (journal._charge, step)

            def drawn() -> Any:
                seen.draws[key] += 1
                return draw()

            seen.questions[key] = dict(question)
            return answer(journal, step, question, drawn)

        with ExitStack() as stack:
            stack.enter_context(patch.object(ingest, "stage_rows", staged))
            stack.enter_context(patch.object(stages, "read_cube", counted))
            stack.enter_context(patch.object(Journal, "answer", answered))
            stack.enter_context(patch.object(cube, "secrets", SimpleNamespace(token_bytes=lambda size: KEY[:size])))
            yield

    def _accounting(self, attack: Attack, made: Tried, before: list[tuple[str, Fraction]], seen: Seen) -> list[str]:
        """What is wrong with charges, draws and noise."""
        charged = self.charges()[len(before) :]
        paid = made.outcome in ("released", "held")
        epsilon = Fraction(str(attack.spec["epsilon"])) if paid else Fraction(0)
        found = []
        if charged != ([(attack.spec["account"], epsilon)] if paid else []):
            found.append(f"charged {charged} for a release of epsilon {epsilon}, which was {made.outcome}")
        if not paid and seen.draws:
            found.append(f"drew for a release that was {made.outcome}")
        if [many for many in seen.draws.values() if many > 1] or len({charge for charge, _ in seen.draws}) > 1:
            found.append("one charge was drawn twice")
        if "release again" in made.ran and made.ran["release again"].code:
            found.append("the same command fails when it is run again")
        return found + (self._wrong_noise(attack, made, seen, epsilon) if paid else [])

    def _wrong_noise(self, attack: Attack, made: Tried, seen: Seen, epsilon: Fraction) -> list[str]:
        """What is wrong with what doors spent, and with the audit."""
        sensitivity, found = sensitivity_of(attack), []
        asked = [(Fraction(question["epsilon"]), question) for question in seen.questions.values()]
        if sum(spent for spent, _ in asked) > epsilon:
            found.append("its doors spent more than was charged")
        for spent, question in asked:
            moves = sensitivity_of_rows(attack).get(question["door"], sensitivity)
            if question["door"] != "choose" and Fraction(question["scale"]) * spent < moves:
                found.append(f"{question} has too little noise for a sensitivity of {moves}")
        for place in (place for place in made.texts if place.endswith("audit.json")):
            audit = json.loads((self.office.folder / place).read_bytes())
            told = (audit["account"], Fraction(audit["epsilon"]), audit["sensitivity"])
            steps = sum(Fraction(step["epsilon"]) for step in audit["charges"])
            if told != (attack.spec["account"], epsilon, sensitivity) or steps != epsilon:
                found.append(f"its audit states {told} and {audit['charges']}")
        return found

    def _wrong_readings(self, attack: Attack, seen: Seen) -> list[str]:
        """What was read that no operator allowed, and units that move counts further than was declared."""
        found = []
        for plan in seen.plans:
            account = str(attack.spec.get("account"))
            source, unit = plan.source, plan.privacy_unit.columns
            asked = (source.format, unit, plan.unit_normalise, source.csv_quote, Path(source.pattern).name)
            plain = source.csv_delimiter == "," and not source.hive and not source.decimal_comma
            real = os.path.realpath(source.pattern) == str(self.office.folder.resolve() / "data" / asked[-1])
            if asked != READINGS.get(account) or not plain or not real:
                found.append(f"read {asked} for account {account}")
        if not found and seen.exact:
            found += self._distance(attack, seen)
        return found

    def _distance(self, attack: Attack, seen: Seen) -> list[str]:
        """Counts on the neighbour's records, by the same key, against the declared sensitivity."""
        plan = seen.plans[0]
        pattern = plan.source.pattern.replace(str(self.office.folder), str(self.neighbour))
        assert pattern != plan.source.pattern
        there = replace(plan, source=replace(plan.source, pattern=pattern, folder=None))
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch, self._watched():
            moved = int(np.abs(cube.read_and_count(there, Path(scratch)) - seen.exact[0]).sum())
        sensitivity = sensitivity_of(attack)
        return [f"one unit moves counts by {moved}, more than {sensitivity}"] if moved > sensitivity else []

    def in_the_end(self) -> list[str]:
        """What is wrong with the ledger, the witness and the catalogue of all releases together."""
        ran = (
            self.office.run("ledger", "verify"),
            self.office.run("ledger", "show"),
            self.office.run("ledger", "report"),
        )
        found = [done.err for done in ran if done.code]
        store = Store.open(self.office.store)
        # Widths are worked out from scales of noise alone, and take longer than all the rest.
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch, patch.object(catalogue_tables, "_add_widths"):
            build_catalogue(store.public, Path(scratch))
        texts = {
            str(path): text
            for path in [*self.office.store.glob("*.sqlite"), *store.public.glob("*.duckdb"), self.office.witness]
            for text in canary._texts(path)
        }
        texts |= {str(number): done.out + done.err for number, done in enumerate(ran)}
        return found + [
            f"{where}: the token {token}" for where, text in texts.items() for token in TOKENS if token in text
        ]


@dataclass
class Tried:
    """What came of one attack: the commands, how it ended, every text that anybody may read, and what is wrong."""

    ran: dict[str, Ran]
    outcome: str
    texts: Said
    findings: list[str] = field(default_factory=list)
