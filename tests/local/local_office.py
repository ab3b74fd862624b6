"""An office that asks a collection, the contributors who answer it on their side, and reports that say the truth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from office import DERIVED, OPEN_HEALTH, Office, Ran
from reports_scenario import random_ids

from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.local.encoding import encode
from dphist_pipeline.local.partition import question_of
from dphist_pipeline.local.question import Question
from dphist_pipeline.local.reports import report_file
from dphist_pipeline.releasing.store import Key, Store
from dphist_pipeline.spec.collection import CollectionSpec, load_collection

COLLECTION: dict[str, Any] = {
    "collection": "ages",
    "value": "age",
    "start": 0,
    "stop": 100,
    "consumers": [{"name": "city", "epsilon": 2, "width": 25}, {"name": "state", "epsilon": 3, "edges": [0, 65, 100]}],
    "protocol": "chp",
    "encoding": "symmetric",
}
PEOPLE = ["who,age\n", *(f"p{number},{number % 100}\n" for number in range(300))]


class LocalOffice:
    """Its project is `office`; reports lie in `reports/`."""

    def __init__(self, office: Office) -> None:
        self.office, self.folder = office, office.folder
        (self.folder / "reports").mkdir()
        office.undecided()

    @property
    def store(self) -> Store:
        return Store.open(self.office.store)

    @property
    def ledger(self) -> Ledger:
        return self.store.ledger()

    def funded(self) -> Office:
        """The office with an account and records for releases of the central model."""
        assert self.office.run("ledger", *OPEN_HEALTH, "--store", self.office.store).code == 0
        self.office.write_records()
        return self.office

    def declared(self, **changes: Any) -> CollectionSpec:
        """The spec with some fields changed; `...` leaves a field out. JSON is YAML."""
        fields = {name: value for name, value in {**COLLECTION, **changes}.items() if value is not ...}
        attributes = json.dumps(fields)
        (self.folder / "ages.yaml").write_text(f"type: dphist_pipeline.LocalCollection\nattributes: {attributes}\n")
        return load_collection(self.folder / "ages.yaml")

    def reports(self, question: Question, values: Any, name: str = "a.parquet") -> Path:
        """A file of reports of contributors who have these values, shape (contributors,) or (contributors, c)."""
        bodies = encode(question, np.asarray(values, dtype=np.float64).reshape(-1, question.values))
        with report_file(question, self.folder / "reports" / name) as add:
            add(random_ids(len(bodies), len(name)), bodies)
        return self.folder / "reports" / name

    def answered(self, values: Any, name: str = "a.parquet", **changes: Any) -> Path:
        """The same, to the collection's question."""
        return self.reports(question_of(self.declared(**changes)), values, name)

    def publish(self, *words: str | Path) -> Ran:
        return self.office.run("local", "publish", "ages.yaml", *words)

    def published(self, *words: str | Path) -> Ran:
        """As `publish`, and it must succeed."""
        ran = self.publish(*words)
        assert ran.code == 0, ran.err
        return ran

    def files(self) -> dict[str, bytes]:
        """Every published file but those that are made from them."""
        public = self.office.store / "public"
        found = [path for path in sorted(public.rglob("*")) if path.is_file() and path.name not in DERIVED]
        return {str(path.relative_to(public)): path.read_bytes() for path in found}

    def audit(self, release: str, period: str = "all", revision: int = 1) -> dict[str, Any]:
        folder = self.store.published(Key(release, period, revision))
        facts: dict[str, Any] = json.loads((folder / "audit.json").read_bytes())
        return facts


def sure(consumers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Consumers at the largest epsilon, at which a bit is turned round once in 10^10 times."""
    return [{**consumer, "epsilon": 50} for consumer in consumers]
