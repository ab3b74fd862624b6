"""For pytest's `-p`: the engines that come first on the path count as the suite's, so that they need no decision.

Only tests have this seam: it is a module beside them, which no configuration and no installation reaches.
"""

from __future__ import annotations

from dphist_pipeline.base import engine_versions

engine_versions.SUITE.update({name: engine_versions.installed_minor(name) for name in engine_versions.HELD})
