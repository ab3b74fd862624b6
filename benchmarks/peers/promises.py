"""What each contender promises for this task, by its documentation and source in the versions that were measured."""

from __future__ import annotations

# Keys are columns of the table in the documentation; `missing` says what an office would have to add itself.
PROMISES: dict[str, dict[str, str]] = {
    "release": {
        "guarantee": "pure ε for a person",
        "noise": "whole numbers, exact law, from the operating system's cryptographic source",
        "bound": "yes, by a keyed hash of the person's own rows",
        "public_keys": "yes, every declared cell",
        "ledger": "durable; a repeated release replays, a crash never draws twice",
        "missing": "",
    },
    "count_cube": {
        "guarantee": "pure ε for a person",
        "noise": "whole numbers, exact law, from the operating system's cryptographic source",
        "bound": "yes, by a keyed hash of the person's own rows",
        "public_keys": "yes, every declared cell",
        "ledger": "none: for studies",
        "missing": "a ledger; `release` has it",
    },
    "opendp": {
        "guarantee": "pure ε for a person",
        "noise": "whole numbers, exact law",
        "bound": "yes, a random sample of the person's rows",
        "public_keys": "yes, by a join with a table of keys",
        "ledger": "in memory, of one context",
        "missing": "a ledger that outlives the process, publishing",
    },
    "pipeline_dp": {
        "guarantee": "pure ε for a person",
        "noise": "Laplace on a grid of floats, safe against the holes of floats",
        "bound": "yes, a random sample of the person's rows",
        "public_keys": "yes",
        "ledger": "in memory, of one run",
        "missing": "a ledger that outlives the process, whole numbers, publishing",
    },
    "smartnoise_sql": {
        "guarantee": "(ε, δ) for a person by its own account (δ = 1e-9 asked)",
        "noise": "whole numbers, exact law",
        "bound": "yes, a random sample of the person's rows",
        "public_keys": "no: keys of the records, all of them (as here) or those above a threshold",
        "ledger": "counts what is spent in memory, and refuses nothing",
        "missing": "public keys (which cells are there depends on the records), pure ε, a ledger, publishing",
    },
    "tumult": {
        "guarantee": "pure ε for a person",
        "noise": "whole numbers, exact law",
        "bound": "yes, by a hash of rows",
        "public_keys": "yes",
        "ledger": "in memory, of one session, which refuses to overspend",
        "missing": "a ledger that outlives the process, publishing",
    },
    "diffprivlib": {
        "guarantee": "pure ε for a row; for a person by a bound that the caller writes",
        "noise": "whole numbers drawn through floats; cut off below 0, so small counts are biased",
        "bound": "no: written by hand in this benchmark, included in its seconds",
        "public_keys": "yes, declared bins",
        "ledger": "in memory, of one accountant",
        "missing": "a bound for a person, noise that is safe against the holes of floats, a ledger, publishing",
    },
}
