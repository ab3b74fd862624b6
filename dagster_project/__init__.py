"""A Dagster project that is ready to run: two releases, and the demo that fills them."""
