"""The wall: budgets, exact noise, the doors to exact counts, the journal of their answers, the ledger."""
