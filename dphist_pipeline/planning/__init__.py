"""Tools to plan a release before it spends epsilon: drafts of specs, rehearsals, forecasts. They read no records."""
