"""Commands after a release: questions to what is published. None reads records or spends."""
