"""What was spent and what was drawn: accounts, what operators allowed, charges, the hash chain, the witness.

It knows sums of epsilon and digests, never a record or an estimate: anybody may read both, who writes is what counts
(docs/explanation/threat-model.md, *Ledger and witness*). Who charges, and when, lies in `releasing`.
"""
