"""What the ledger and the witness say to people: their errors, and amounts as people write them.

Nothing here decides anything: the ledger has decided when it raises one of these, and every one of them stops what was
begun. What they are made of is public: entries of the ledger, addresses without passwords, and what was asked for.
"""
