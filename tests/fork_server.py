"""Child processes that start warm, from a fork server that has loaded the package and run none of it.

A process has one fork server, and what it loads is chosen once: so all tests take theirs from here.
"""

from __future__ import annotations

import multiprocessing

WARM = ["pytest", "sqlalchemy", "pyarrow.parquet"]
WARM += [
    f"dphist_pipeline.{module}"
    for module in (
        "answering.building",
        "answering.catalogue",
        "confidential.reading.ingest",
        "ledger.ledger",
        "local.contributor",
        "publishing._card",
        "publishing.pages",
        "releasing._approvals",
        "releasing.release",
        "releasing.store",
        "spec.loading",
    )
]
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(WARM)
