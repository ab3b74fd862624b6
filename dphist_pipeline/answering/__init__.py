"""Questions to published tables: sums with 95 % intervals, the catalogue for DuckDB, exports and plots.

It reads public files only. What an interval is lies in `estimates`; what a card or a file holds, in `publishing`.
"""
