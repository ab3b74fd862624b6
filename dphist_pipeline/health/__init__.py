"""Whether a machine, a store, its ledger and its witness are as releases need them; nothing here opens a record."""
