"""Pure arithmetic on arrays: no epsilon, no randomness, no records. Hot loops are compiled by Numba."""
