"""Which charged periods wait for a person because their numbers are in doubt (`publish: if_plausible`).

The charge cannot say so: it is made before anything is drawn. So a file beside the store's specs says it, named by the
hash of the charge and empty. That a period waits rests on noisy numbers that were paid for.
"""

from __future__ import annotations

from dphist_pipeline.files import make_folder, write_durably
from dphist_pipeline.ledger.entries import Charge
from dphist_pipeline.releasing.store import Store


def keep_doubted(store: Store, charge: Charge) -> None:
    """Keeps that what a charge paid for waits for a person."""
    place = store.root / "specs" / "waiting" / charge.hash
    if not place.exists():
        make_folder(place.parent)
        write_durably(place, b"")


def is_doubted(store: Store, charge: Charge) -> bool:
    """Whether a charge that is not published waits for a person, not for another run."""
    return (store.root / "specs" / "waiting" / charge.hash).exists()
