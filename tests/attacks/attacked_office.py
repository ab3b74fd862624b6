"""An office that attackers write specs for, and all that must hold after each of their specs.

Planted are unique tokens and exact counts of five digits. The noise of counts is large and random, so that nothing
released equals an exact count by chance. A count that is found is a leak only where the office's twin, whose counts
are others, shows one of its own in the same place: sizes of files and seconds have five digits, too. A third office has
a handful of records; whatever is said that holds no number must be the same there.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import canary
from attacked_accounts import ACCOUNTS
from attacked_boundary import Readings, Seen, watched, wrong_noise
from attacked_noise import at, outcome, plain_card
from attacked_records import NUMBER, WHALE_ROWS, write_records
from office import Office, Ran
from spec_parts import ALLOWED_QUERY, ALLOWED_QUERY_FILE, Attack

from dphist_pipeline.answering import catalogue_tables
from dphist_pipeline.answering.catalogue import build_catalogue
from dphist_pipeline.releasing.store import Store

TOKENS = ("zyxwv", str(NUMBER), str(NUMBER).replace(".", ","))
# Records of a unit each, by ward; the last of them name no unit.
COUNTS = {
    "data/health.parquet": (12_611, 11_847, 11_299, 10_973, 10_159),
    "data/clinic.csv": (12_347, 10_459, 0, 0, 0),
    "data/secret.parquet": (13_577, 0, 0, 0, 0),
    "data/2026/10.parquet": (11_833, 0, 10_331, 0, 0),
    "data/pairs/pairs.csv": (10_691, 0, 0, 0, 0),
    "data/rows.parquet": (10_337, 10_069, 0, 0, 0),
}
TWIN_COUNTS = {name: tuple(count and count + 1_117 for count in counts) for name, counts in COUNTS.items()}
FEW = {name: (0, 2, 0, 3, 1) if name.startswith("data/h") else (1, 0, 4, 0, 0) for name in COUNTS}
PUBLIC_FILES = {
    "codes/wards.csv": "code,title,site\nsurgery,Surgery,all\nmedicine,,all\nguessed,Other,all\n",
    "codes/tree.csv": "code,above\nsurgery,all\nmedicine,all\nall,\n",
    "codes/broken.csv": 'code,title\na,"b\nb\n',
    "codes/figures.csv": "level,value,persons\nward,surgery,30000\nward,medicine,20000\n",
    "codes/queries.csv": "axis,from,to,weight\nward,surgery,,2\nage,0,50,1\n",
    ALLOWED_QUERY_FILE: ALLOWED_QUERY,
}
Said = dict[str, str]


class AttackedOffice:
    """The office, records of its neighbour, and its twin, which is made when it is needed.

    Args:
        folder: empty.
        counts: that are planted.
    """

    def __init__(self, folder: Path, counts: Mapping[str, tuple[int, ...]] = COUNTS) -> None:
        self.folder, self.office, neighbour = folder, Office(folder / "office"), folder / "neighbour"
        self._twin = self._few = None if counts is COUNTS else self
        self.sums = frozenset(
            sum(some) + more
            for more in (0, 1, WHALE_ROWS)
            for per_ward in counts.values()
            for size in range(1, 6)
            for some in itertools.combinations([count for count in per_ward if count], size)
        )
        write_records(self.office.folder, counts, ("here", "here"))
        write_records(neighbour, counts, ("", "others"))
        self._readings = Readings(self.office.folder, neighbour)
        for name, content in PUBLIC_FILES.items():
            (self.office.folder / name).parent.mkdir(exist_ok=True)
            (self.office.folder / name).write_text(content)
        self._decide()
        self._write_links()
        shutil.copytree(self.office.store, folder / "start")
        shutil.copy(self.office.witness, folder / "start.witness")
        self._files: dict[Path, tuple[int, int]] = {}
        self._new_files()
        self.seen = Seen()

    def _decide(self) -> None:
        """All that the operator ever decides."""
        done: list[list[str]] = [["init"]]
        for account in ACCOUNTS:
            fixed = account.fields
            unit = fixed["privacy_unit"]
            words = ["--privacy-unit", unit if isinstance(unit, str) else ",".join(unit)]
            words += ["--neighbours", str(fixed["neighbours"]), "--source", str(fixed["source"])]
            done.append(["ledger", "open", str(fixed["account"]), *words, "--total", account.total, *account.options])
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

    @property
    def few(self) -> AttackedOffice:
        """An office with a handful of records."""
        if self._few is None:
            self._few = AttackedOffice(self.folder / "few", FEW)
        return self._few

    # What attackers do.

    def write(self, attack: Attack) -> None:
        """Writes the attacker's files."""
        (self.office.folder / "spec.yaml").write_text(json.dumps(attack.document, ensure_ascii=False))
        (self.office.folder / "sql/query.sql").write_text(attack.query)

    def tried(self, attack: Attack, manner: Manner) -> Tried:
        """Runs commands on an attack, and tells what is wrong after it."""
        self.write(attack)
        told, seen, before = list[logging.LogRecord](), Seen(), self.charges()
        handler = logging.Handler()
        handler.emit = told.append  # type: ignore[method-assign]
        logging.getLogger().addHandler(handler)
        try:
            ran = self._ran(attack, manner, seen)
        finally:
            logging.getLogger().removeHandler(handler)
        said = {
            f"{place} of {name}": text
            for name, done in ran.items()
            for place, text in (("out", done.out), ("err", done.err))
        }
        said["log"] = "\n".join(f"{record.getMessage()} {record.exc_text}" for record in told)
        made = Tried(ran, outcome(ran["release"], seen.begun), said | self._new_texts())
        made.findings += [
            f"{where}: something unexpected failed"
            for where, text in said.items()
            if "something unexpected" in text or "Traceback" in text
        ]
        made.findings += [
            f"{where}: the token {token}" for where, text in made.texts.items() for token in TOKENS if token in text
        ]
        made.findings += self._accounting(attack, made, before, seen)
        made.findings += self._readings.wrong(attack, seen)
        if self._twin is not self and not made.findings:
            made.findings += self._counts_told(attack, manner, made)
            made.findings += self._told_apart(attack, manner, made) if manner.compared else []
        return made

    def _ran(self, attack: Attack, manner: Manner, seen: Seen) -> dict[str, Ran]:
        """What commands said, by command."""
        spec, ran, window = f"{self.office.folder / 'spec.yaml'}{attack.named}", dict[str, Ran](), ExitStack()
        for name, *more in manner.before:
            ran[" ".join((name, *more))] = self.office.run(name, spec, *more)
        with window:
            if not manner.dressed:
                window.enter_context(plain_card())
            window.enter_context(watched(seen))
            ran["release"] = self.office.run("release", spec, *attack.words)
            if ran["release"].code == 0 and manner.again:
                ran["release again"] = self.office.run("release", spec, "--json", *attack.words)
            if outcome(ran["release"], seen.begun) == "held" and manner.again:
                ran["publish"] = self.office.run("publish", spec, "--approved-by", "somebody", *attack.words)
            for name, *more in manner.after if ran["release"].code == 0 else ():
                ran[" ".join((name, *more))] = self.office.run(name, attack.release, *more)
        return ran

    def _counts_told(self, attack: Attack, manner: Manner, made: Tried) -> list[str]:
        """Exact counts that were told, where the twin tells one of its own in the same place.

        A number that both tell comes from the spec, such as a scale of noise.
        """
        here, found = _numbers_in(made), list[str]()
        if not any(numbers & self.sums for numbers in here.values()):
            return found
        self.twin.renew()
        with at(self.twin.office.folder):
            there = _numbers_in(self.twin.tried(attack, manner))
        for place in here.keys() & there.keys():
            counts = (here[place] - there[place]) & self.sums
            if counts and (there[place] - here[place]) & self.twin.sums:
                found.append(f"{place}: the exact count {min(counts)}")
        return found

    def _told_apart(self, attack: Attack, manner: Manner, made: Tried) -> list[str]:
        """What was said otherwise than in an office with a handful of records."""
        self.few.renew()
        with at(self.few.office.folder):
            there = self.few.tried(attack, manner)
        if there.outcome != made.outcome:
            return [f"{made.outcome}, and {there.outcome} in an office with a handful of records"]
        here, few = ({name: (done.code, _bare(done.err)) for name, done in one.ran.items()} for one in (made, there))
        # What waits is not published yet, and these name other releases, of which an office that begins anew has none.
        unlike = {" ".join(words) for words in manner.after} if made.outcome == "held" else set()
        return [
            f"{name} says {here[name]}, and {few.get(name)} of other records"
            for name in here.keys() - unlike
            if here[name] != few.get(name)
        ]

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
        charged = [(str(row[2]), json.loads(row[6])) for row in self.office.entries() if row[1] == "charged"]
        return [(account, Fraction(body["epsilon"])) for account, body in charged]

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
        for name in ("release again", "publish"):
            if name in made.ran and made.ran[name].code:
                found.append(f"{name} fails")
        # Files of a release that was released before are not new.
        audits = [self.office.folder / place for place in made.texts if place.endswith("audit.json")]
        return found + (wrong_noise(attack, audits, seen, epsilon) if paid else [])

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


def _numbers_in(made: Tried) -> dict[str, set[int]]:
    """Numbers that have as many digits as a count, by place."""
    found = {}
    for place, text in made.texts.items():
        bare = re.sub(r"(?<=\d)[,_ ](?=\d{3}(?!\d))", "", text)
        found[place] = set(map(int, re.findall(r"(?<![0-9A-Za-z])(?<!\d\.)\d{5,7}(?![0-9A-Za-z])", bare)))
    return found


@dataclass
class Manner:
    """How an attack is tried.

    Attributes:
        before: commands on the spec, with their options.
        again: whether what was released is released again, which is a replay, and what waits is published.
        after: commands on what was released, with their options.
        dressed: whether a publication gets its card with pictures.
        compared: whether an office with a handful of records tells of the attack, too.
    """

    before: Sequence[tuple[str, ...]] = (("check",),)
    again: bool = True
    after: Sequence[tuple[str, ...]] = ()
    dressed: bool = True
    compared: bool = False


def _bare(text: str) -> str:
    """A message without its places and numbers."""
    return re.sub(r"[\d.,]+", "0", " ".join(re.sub(r"(/[^\s/]+)+", "", text).split()))
