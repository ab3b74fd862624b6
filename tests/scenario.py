"""Unmodifiable facts tests share."""
