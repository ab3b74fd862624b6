"""The operator's commands: the store, its ledger, its copy, and whether all of it is sound."""
