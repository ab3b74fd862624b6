"""Doors to other people's tools; each module imports its tool, and nothing else here does."""
