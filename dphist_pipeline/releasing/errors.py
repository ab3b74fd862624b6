"""Why a release stops: each error says what, where, and how to mend it."""

from __future__ import annotations

from fractions import Fraction

from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.ledger import Charge
from dphist_pipeline.releasing.store import Key


class NothingToRevise(DphistError):
    """`--revise` for a period that was never released."""

    def __init__(self, release: str, period: str) -> None:
        self.release, self.period = release, period
        super().__init__(f"release '{release}', period {period}: nothing to revise yet. Leave out --revise.")


class TakenByACollection(DphistError):
    """A release whose name has a histogram of a collection, from the local model."""

    def __init__(self, key: Key) -> None:
        self.key = key
        super().__init__(
            f"'{key.release}' is published in this store already, by a collection of the local model. This call spent "
            "nothing; rename the release."
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
            f"release '{key.release}', period {key.period}: there is neither a cube of this run nor a journal. Run all "
            "of its steps together (records, cube, sanitized, published): the cube is deleted when its run ends."
        )
