"""Answers questions from published tables, with 95 % intervals, and builds the DuckDB catalogue. Public files only."""
