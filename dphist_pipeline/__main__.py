"""`python -m dphist_pipeline` is `dphist`."""

from dphist_pipeline.cli import main

main()
