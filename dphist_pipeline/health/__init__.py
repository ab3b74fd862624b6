"""Whether a machine, a store, its ledger and its witness are as releases need them: the checks of `dphist doctor`.

Nothing here opens a record, mends anything or decides what a release does.
"""
