"""The public side: Parquet, audit, card and pictures, whose bytes are a function of released values and the spec alone.

It writes what it is given and asks nothing of a ledger or of records. When a file is written is told in `releasing`.
"""
