"""Why a witness refuses: what is wrong, where, and how to mend it."""

from __future__ import annotations

from dphist_pipeline.ledger.errors import ADOPT, LedgerError


class WitnessAltered(LedgerError):
    message = (
        "The witness at {where} cannot be used: {problem}. Put back an intact one. If there is none, move the file "
        f"away and run {ADOPT} for every store that it knew."
    )


class WitnessMissing(LedgerError):
    """No witness, or one that does not know the store, or a charge of it."""

    def __init__(self, where: str, unknown: str = "") -> None:
        found = f"The witness at {where} does not know {unknown}" if unknown else f"There is no witness at {where}"
        super().__init__(
            problem=f"{found}. Set DPHIST_WITNESS to the witness that this store had. If it is lost, and no copy of "
            f"this store is in use: {ADOPT}."
        )


class StoreEnrolled(LedgerError):
    message = "The witness at {where} knows store {store_id} already. A new store takes a new id."


class StoreSuperseded(LedgerError):
    """Another copy of the store was adopted."""

    def __init__(self, where: str, store_id: str, generation: int, current: int) -> None:
        self.generation, self.current = generation, current
        own = f"generation {generation}" if generation != current else f"another generation {generation}"
        super().__init__(
            problem=f"Another copy of store {store_id} was adopted: the witness at {where} is at generation {current}, "
            f"this copy at {own}. This copy draws no more. Release from the adopted copy; only if that one is lost: "
            f"{ADOPT}."
        )


class WitnessOutdated(LedgerError):
    message = (
        "The witness at {where} is at generation {known} of store {store_id}, its ledger at {generation}: the witness "
        f"was put back from a backup, or an adoption was interrupted. Put back the newer witness, or run {ADOPT}."
    )


class LedgerBehindWitness(LedgerError):
    message = (
        "The witness at {where} has seen a charge that this ledger does not hold as entry {charge.number}: "
        "{charge.title}. This store is a copy, or was put back from a backup, and drew nothing. Put the newer ledger "
        f"back; if it is lost: {ADOPT}."
    )


class AnswerDrawnElsewhere(LedgerError):
    message = (
        "A copy of this store has drawn the answer to '{step}' already, as the witness at {where} saw, or this store's "
        "journal was lost. Nothing of this draw was used. Release from that copy, put the journal back, or release "
        "anew, at its price: --revise --reason TEXT."
    )
