"""Noisy cells, shrunk or averaged after they were drawn: rules, their risks and weights."""
