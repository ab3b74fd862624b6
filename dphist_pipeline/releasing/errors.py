"""Why a release stops: each error says what, where, and how to mend it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.ledger import Charge
from dphist_pipeline.releasing.store import Key


class NothingToRevise(DphistError):
    """`--revise` for a period that was never released."""

    def __init__(self, release: str, period: str) -> None:
        self.release, self.period = release, period
        super().__init__(f"release '{release}', period {period}: nothing to revise yet. Leave out --revise.")


class UpstreamUnchecked(DphistError):
    """A plain run of a release that requires upstream partitions, of which only Dagster knows."""

    def __init__(self, release: str, deps: Sequence[str], checks: Sequence[str] = ()) -> None:
        self.release, self.deps, self.checks = release, tuple(deps), tuple(checks)
        passed = f" and that {', '.join(checks)} passed" if checks else ""
        super().__init__(
            f"release '{release}' requires that all partitions of {', '.join(deps)} for the period are there{passed} "
            f"(`require: {'checks' if checks else 'partitions'}`), and only Dagster knows that. Run it in Dagster, or "
            "look yourself and say so: --upstream-checked REASON, which the audit keeps. Nothing was read or spent."
        )


class NameTaken(DphistError):
    """A name that belongs to another release of the store: of another collection, or of the other model."""

    def __init__(self, release: str) -> None:
        self.release = release
        super().__init__(
            f"'{release}' belongs to something else in this store already: to a release of the central model, or to a "
            "consumer of a collection of the local model. This call published and spent nothing; rename the release, "
            "the consumer or the collection."
        )


class ViewTaken(DphistError):
    """A name that a release and a view of another release would share in the catalogue."""

    def __init__(self, release: str, other: str) -> None:
        self.release, self.other = release, other
        name = max(release, other, key=len)
        super().__init__(
            f"'{release}' and '{other}' cannot both be releases of one store: in the catalogue, {name} is the view of "
            f"every revision of {min(release, other, key=len)}. This call published and spent nothing; rename "
            f"'{release}'."
        )


class TableTaken(DphistError):
    """A name in the catalogue that a table of a family and another release would share."""

    def __init__(self, release: str, name: str, other: str) -> None:
        self.release, self.name, self.other = release, name, other
        super().__init__(
            f"'{release}' would need the name {name} in the catalogue, which belongs to '{other}'. This call published "
            f"and spent nothing; rename '{release}'."
        )


class Withdrawn(DphistError):
    """A publication that was taken back."""

    def __init__(self, key: Key, at: str, reason: str, local: bool = False) -> None:
        self.key, self.at, self.reason = key, at, reason
        again = (
            "To publish that period anew costs nothing more: dphist local publish SPEC --revise --reason TEXT, with a "
            "TEXT that was not given before."
            if local
            else "What it spent stays spent. To publish that period anew, at its price: dphist release with --revise "
            "--reason TEXT."
        )
        super().__init__(
            f"release '{key.release}', period {key.period}, revision {key.revision} was withdrawn on {at[:10]}: "
            f"{reason}. {again}"
        )


class RevisedMeanwhile(DphistError):
    """Somebody else revised the same period a moment ago, for another reason."""

    def __init__(self, charge: Charge) -> None:
        self.charge = charge
        super().__init__(
            f"release '{charge.release}', period {charge.period}: revision {charge.revision} was charged a moment ago "
            f"by somebody else, with the reason '{charge.reason}'. This call spent nothing; if another revision is "
            "still wanted, run the same command again."
        )


class AnswersLost(DphistError):
    """A release was published once, and neither its files nor its journal are there any more."""

    def __init__(self, key: Key) -> None:
        self.key = key
        super().__init__(
            f"release '{key.release}', period {key.period}, revision {key.revision} was published, but its files "
            "and its journal are gone. Drawing again would spend its epsilon twice: put them back from a backup, or "
            "release anew, at its price, with --revise --reason TEXT."
        )


class MechanismMisspent(DphistError):
    """A mechanism spent another epsilon than the spec declares."""

    def __init__(self, mechanism: str, spent: Fraction, declared: Fraction) -> None:
        self.spent, self.declared = spent, declared
        super().__init__(f"mechanism '{mechanism}' spent epsilon {spent} of {declared}: a fault of the mechanism")


class ValuesDiffer(DphistError):
    """What the journal gives now is not what was published."""

    def __init__(self, key: Key) -> None:
        super().__init__(
            f"release '{key.release}', period {key.period}, revision {key.revision}: the journal now gives other "
            "values than were published. Use the version of dphist-pipeline that published it."
        )


class CubeMissing(DphistError):
    """A later step was run alone, and what an earlier one leaves for it is not there."""

    def __init__(self, key: Key) -> None:
        self.key = key
        super().__init__(
            f"release '{key.release}', period {key.period}: it was not drawn yet, or not to its end, so nothing is "
            "published. Run the whole release: its job, or all of its assets together."
        )
