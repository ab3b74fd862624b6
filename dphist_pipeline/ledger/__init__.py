"""What was spent and what was drawn: accounts, what operators allowed, charges, the hash chain."""
