"""The steps of a release, its store, and what operators decide about both."""
