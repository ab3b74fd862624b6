"""What every package imports: the domain of a table, numbers and texts as they are written, files, languages.

It knows no budget, no ledger and no record.
"""
