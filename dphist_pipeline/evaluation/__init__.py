"""Measures mechanisms against exact counts: for public or synthetic data only. Nothing is charged or published."""
