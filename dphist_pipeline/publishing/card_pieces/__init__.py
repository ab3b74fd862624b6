"""The sections of a release card, each a function of the published values and the audit alone."""
