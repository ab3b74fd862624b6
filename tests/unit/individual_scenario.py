"""An individual account without a store: a ledger, a folder of states, and rows as reading would stage them.

Patients have a number of rows in each week. What a week's charge counted is told by its state; see `Office.week`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.confidential.plan import CountingPlan, Marginal, SourcePlan
from dphist_pipeline.ledger.entries import Account, Charge, ChargeRequest, Folder
from dphist_pipeline.ledger.individual import PARTS
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.releasing._individual_charge import GrantedRows, States
from dphist_pipeline.spec.periods import EVERYTHING, Period

READING = Reading("patients.parquet", "/records", "parquet", unit=("patient_id",), unit_kinds=("text",))
TERMS = Account("health", "patient_id", "add_remove", Fraction(2), "yearly", "store", accounting="individual")
WEEKLY = ChargeRequest(
    *("health", "weekly", "01", 1, Fraction(1, 2), "digest", "", "patient_id", "add_remove", "store"),
    source=READING,
    folder=Folder("0" * 32, "here"),
    rows=3,
)
CELLS = 4
Patients = Mapping[str, int]


def plan_for(rows: int, family: bool = False) -> CountingPlan:
    """A plan of one table of `CELLS` cells; or of a family of two tables of two cells, whose rows are words."""
    source = SourcePlan("patients.parquet", READING, "patients.parquet")  # type: ignore[arg-type]
    unit: Any = SimpleNamespace(columns=("patient_id",))
    tables = tuple(Marginal((axis,), (None,), (2,)) for axis in (0, 1)) if family else ()
    domain = Domain.from_shape((2, 2) if family else (CELLS,))
    return CountingPlan(source, unit, rows, domain, Period(EVERYTHING, None, None), marginals=tables)


@dataclass
class Office:
    """An individual account in a folder; `counts`, `left_out`: what was counted last, by cell, and who not for the
    first time.
    """

    folder: Path
    ledger: Ledger
    counts: np.ndarray[Any, Any] = field(default_factory=lambda: np.zeros(CELLS, dtype=np.int64))
    left_out: int = 0

    @classmethod
    def open(cls, folder: Path, **terms: Any) -> Office:
        folder.mkdir(parents=True)
        operator = Operator.load_or_make()
        ledger = Ledger.create(f"sqlite:///{folder}/ledger.sqlite", operator)
        ledger.open_account(replace(TERMS, **terms), operator, READING)
        return cls(folder, ledger)

    @property
    def store(self) -> Any:
        return SimpleNamespace(confidential=self.folder / "confidential")

    @property
    def states(self) -> Path:
        return States.of(self.store, self.ledger, "health").folder

    def request(self, week: int, **changes: Any) -> ChargeRequest:
        return replace(WEEKLY, period=f"{week:02}", **changes)

    def rows(self, patients: Patients, most: int = 3, family: bool = False) -> GrantedRows:
        """A run that has these patients' rows before it."""
        plan, run = plan_for(most, family), self.folder / f"run{uuid.uuid4().hex}"

        def read() -> tuple[CountingPlan, Path]:
            run.mkdir()
            units = [patient for patient, many in patients.items() for _ in range(many)]
            codes = [number % CELLS for number in range(len(units))]
            table = {"unit": pa.array(units, pa.string()), "code": pa.array(codes, pa.int32())}
            if family:
                table["word_0"] = pa.array(codes, pa.int64())
            pq.write_table(pa.table(table), run / "rows.parquet")
            return plan, run / "rows.parquet"

        return GrantedRows(self.store, self.ledger, "health", read)

    def week(self, week: int, patients: Patients, published: bool = True, **changes: Any) -> int:
        """Charges a week, or joins its charge, and gives how many rows it counts."""
        request = self.request(week, **changes)
        rows = self.rows(patients, request.rows)
        charge = rows.charge(request)
        self.counts, bought = rows.counts(charge), charge.granted is not None and charge.granted.left_out
        self.left_out = int(rows.left_out(charge).left_out[0]) if bought else 0
        if published:
            self.ledger.record_published(charge, f"digest of {charge.hash}")
        return int(self.counts.sum())

    def charges(self) -> list[Charge]:
        return self.ledger.books().every_charge()

    def bought(self) -> list[Fraction]:
        """What each charge says that it pays for the number of units left out."""
        return [charge.granted.left_out for charge in self.charges() if charge.granted]

    def everybody(self) -> list[Fraction]:
        """What each charge says that everybody paid beside own rows."""
        return [charge.granted.everybody for charge in self.charges() if charge.granted]

    def file(self, charge: int = -1) -> Path:
        """The state of a charge, by its place."""
        granted = self.charges()[charge].granted
        assert granted is not None
        return self.states / f"{granted.state}.parquet"

    def paid(self, charge: int = -1) -> list[tuple[Fraction, int, int]]:
        """What each patient has paid, how many rows count, and whether it is left out, the poorest first."""
        read = pq.read_table(self.file(charge)).to_pydict()
        exact = (Fraction(paid, PARTS) for paid in read["paid"])
        return sorted(zip(exact, read["rows"], read["left"], strict=True))
