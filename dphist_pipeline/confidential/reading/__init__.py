"""Reading records: DuckDB opens a source and writes, for each row in a declared cell, its unit and its cell."""
