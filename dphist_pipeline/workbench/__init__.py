"""Before a release: drafts, forecasts and rehearsals (`planning`), and comparisons on public counts (`evaluation`).

Nothing that reads records, spends epsilon or publishes imports it.
"""
