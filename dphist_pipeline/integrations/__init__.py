"""Ways into other people's tools: Dagster, data frames of Polars, your own DuckDB.

Each module imports its tool, and nothing else in the package does. What a release does lies in `releasing`.
"""
