"""Engines other than DuckDB: they read, bound and count where the records are, and give back the cube alone."""
