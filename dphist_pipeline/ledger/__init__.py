"""What was spent and what was drawn: accounts, what operators allowed, charges, the hash chain, the witness.

It knows sums of epsilon and digests, never a record or an estimate. Who charges, and when, lies in `releasing`.
"""
