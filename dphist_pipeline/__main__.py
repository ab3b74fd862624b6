"""Runs the command line: `python -m dphist_pipeline` is the same as `dphist`."""

from dphist_pipeline.cli.app import main

main()
