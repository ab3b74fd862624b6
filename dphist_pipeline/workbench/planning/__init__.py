"""Tools to plan a release before it spends epsilon: drafts of specs, rehearsals on invented records, forecasts.

They read no records. Laws of errors lie in `estimates`; comparisons on public counts, in `evaluation`.
"""
