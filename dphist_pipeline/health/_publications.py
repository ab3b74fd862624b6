"""The check of published files: the newest ones hold what the ledger recorded."""

from __future__ import annotations

from importlib.metadata import version

from dphist_pipeline.errors import DphistError
from dphist_pipeline.health.finding import Examined, Finding, fault, listed, not_looked_at, ok
from dphist_pipeline.publishing.public_files import refuse_links
from dphist_pipeline.publishing.published_files import PublishedFolder
from dphist_pipeline.releasing.store import Key

MOST = 100  # publications that are read; `dphist ledger verify` reads all


def publications(seen: Examined) -> Finding:
    """The newest publications of every account: whole, and with the values and costs that the ledger recorded.

    Args:
        seen: without its store or its ledger, nothing is looked at.
    """
    check = "publications"
    if seen.store is None or seen.ledger is None:
        return not_looked_at(check, "the ledger could not be opened")
    read, damaged, problem, books = 0, list[str](), "", seen.ledger.books()
    others = 0  # whose pages another version wrote
    there = [charge for charge in books.every_charge() if charge.number in books.published]
    for charge in sorted(there, key=lambda charge: charge.number, reverse=True)[:MOST]:
        key, recorded = Key.of(charge), books.published[charge.number]
        folder = seen.store.published(key)
        if charge.lost or not folder.exists():
            continue
        try:
            refuse_links(seen.store.public, folder)
            audit = seen.store.vouched_audit(seen.ledger, charge, recorded)
            read += 1
            others += PublishedFolder(folder).page_version(audit) != version("dphist-pipeline")
        except DphistError as error:
            damaged.append(str(key.public_place))
            problem = problem or str(error)
    if damaged:
        return fault(check, f"not what the ledger recorded: {listed(damaged)}", problem)
    text = f"the newest {read} are whole, with the values that the ledger recorded (ledger verify reads all)"
    return ok(check, f"{text}; pages of {others} are by another version: see dphist store pages" if others else text)
