"""The local model: every contributor perturbs their own values, and the curator never sees them.

`question`, `coins`, `encoding` and `contributor` are the contributor's side, which needs NumPy and `cryptography` only.
"""
