"""Compares mechanisms with exact counts, of public or synthetic data only. It charges and publishes nothing.

Metrics, workloads and public sets lie here; the studies of the papers are scripts in `benchmarks/`.
"""
