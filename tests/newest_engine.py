"""For pytest's `-p`: the DuckDB that comes first on the path counts as the suite's, so that it needs no decision.

Only tests have this seam: it is a module beside them, which no configuration and no installation reaches.
"""

from __future__ import annotations

from dphist_pipeline import engine_versions

engine_versions.SUITE["duckdb"] = engine_versions.installed_minor("duckdb")
