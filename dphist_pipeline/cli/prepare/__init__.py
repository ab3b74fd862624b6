"""Commands before a release: a draft, what a spec asks for, how large errors will be. None reads records or spends."""
