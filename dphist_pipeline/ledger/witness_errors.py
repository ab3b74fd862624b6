"""Why a witness refuses: each error carries what it is about, and says how to mend it."""

from __future__ import annotations

from dphist_pipeline.ledger.errors import LedgerError


class WitnessError(LedgerError):
    """Anything that a witness refuses."""


class WitnessAddressRefused(WitnessError):
    """The witness's address is not one that can be used, or lies where a copy of the store would take it along."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"The witness cannot be kept there: {problem}. Set DPHIST_WITNESS to the absolute path of a file outside "
            "the store that is no ledger."
        )


class WitnessUnwritable(WitnessError):
    """The file system or the database engine refused."""

    def __init__(self, where: str, problem: str = "you have no write permission on the file or its folder") -> None:
        self.where, self.problem = where, problem
        super().__init__(
            f"The witness at {where} cannot be read and written: {problem}. Mend that, or set DPHIST_WITNESS to a file "
            "outside the store, in a folder that you may write to."
        )


class WitnessBusy(WitnessError):
    """Somebody else held the witness for too long."""

    def __init__(self, where: str, seconds: float) -> None:
        self.where, self.seconds = where, seconds
        super().__init__(
            f"The witness at {where} was in use by another program for more than {seconds:g} seconds. Run the same "
            "command again once it is free: it is never charged twice."
        )


class WitnessAltered(WitnessError):
    """A file that is no witness, is damaged, or was made by a newer version."""

    def __init__(self, where: str, problem: str) -> None:
        self.where, self.problem = where, problem
        super().__init__(
            f"The witness at {where} cannot be used: {problem}. Put back an intact one. If there is none, move the "
            "file away and run `dphist store adopt --reason TEXT` for every store that it knew."
        )


class WitnessMissing(WitnessError):
    """No witness, or one that does not know the store, or a charge of it."""

    def __init__(self, where: str, unknown: str = "") -> None:
        self.where, self.unknown = where, unknown
        found = f"The witness at {where} does not know {unknown}" if unknown else f"There is no witness at {where}"
        super().__init__(
            f"{found}. Set DPHIST_WITNESS to the witness that this store had. If it is lost, and no copy of this store "
            "is in use: `dphist store adopt --reason TEXT`."
        )


class WitnessExists(WitnessError):
    """A witness was to be made where something is already."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(f"{where} is there already.")


class StoreEnrolled(WitnessError):
    """A store was to be enrolled a second time."""

    def __init__(self, where: str, store_id: str) -> None:
        self.where, self.store_id = where, store_id
        super().__init__(f"The witness at {where} knows store {store_id} already. A new store takes a new id.")


class StoreSuperseded(WitnessError):
    """Another copy of the store was adopted."""

    def __init__(self, where: str, store_id: str, generation: int, current: int) -> None:
        self.where, self.store_id, self.generation, self.current = where, store_id, generation, current
        own = f"generation {generation}" if generation != current else f"another generation {generation}"
        super().__init__(
            f"Another copy of store {store_id} was adopted: the witness at {where} is at generation {current}, this "
            f"copy at {own}. This copy draws no more. Release from the adopted copy; only if that one is lost: "
            "`dphist store adopt --reason TEXT`."
        )


class WitnessOutdated(WitnessError):
    """The witness does not know yet that this store was adopted."""

    def __init__(self, where: str, store_id: str, generation: int, known: int) -> None:
        self.where, self.store_id, self.generation, self.known = where, store_id, generation, known
        super().__init__(
            f"The witness at {where} is at generation {known} of store {store_id}, its ledger at {generation}: the "
            "witness was put back from a backup, or an adoption was interrupted. Put back the newer witness, or run "
            "`dphist store adopt --reason TEXT`."
        )


class LedgerBehindWitness(WitnessError):
    """The witness has seen a charge that the ledger does not hold, or holds otherwise."""

    def __init__(self, where: str, release: str, period: str, revision: int, number: int) -> None:
        self.where, self.number = where, number
        self.release, self.period, self.revision = release, period, revision
        super().__init__(
            f"The witness at {where} has seen a charge that this ledger does not hold as entry {number}: {release}, "
            f"period {period}, revision {revision}. This store is a copy, or was put back from a backup, and drew "
            "nothing. Put the newer ledger back; if it is lost: `dphist store adopt --reason TEXT`."
        )


class ChargeBeforeWitness(WitnessError):
    """A charge is dated before the latest year that the witness has seen."""

    def __init__(self, where: str, year: int, latest: int) -> None:
        self.where, self.year, self.latest = where, year, latest
        super().__init__(
            f"A charge of {year} comes after one of {latest}, which the witness at {where} has seen. Set the clock "
            "right and run the same command again. Was it the later year that was wrong: `dphist store adopt "
            "--reason TEXT`."
        )


class AnswerDrawnElsewhere(WitnessError):
    """Another answer was drawn for the same charge and step."""

    def __init__(self, where: str, step: str) -> None:
        self.where, self.step = where, step
        super().__init__(
            f"A copy of this store has drawn the answer to '{step}' already, as the witness at {where} saw, or this "
            "store's journal was lost. Nothing of this draw was used. Release from that copy, put the journal back, or "
            "release anew, at its price: --revise --reason TEXT."
        )
