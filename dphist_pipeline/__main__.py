"""`python -m dphist_pipeline` is `dphist`."""

from dphist_pipeline.cli.app import main

main()
