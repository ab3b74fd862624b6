"""The steps of a release, its store, and what operators decide about both.

`run.py` is the story to read first. Counting and noise lie in `confidential`, accounts in `ledger`.
"""
