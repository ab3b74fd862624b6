"""Compares mechanisms with exact counts, for public or synthetic data only. Charges and publishes nothing."""
