"""Questions to published tables: boxes of cells, their error bars, and the DuckDB catalogue. Public files only."""
