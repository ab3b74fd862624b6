"""Pure arithmetic on arrays, in the families of the mechanisms: no epsilon, no randomness, no records.

Hot loops are compiled by Numba. What a mechanism asks of records, and what it pays, lies in `mechanisms`.
"""
