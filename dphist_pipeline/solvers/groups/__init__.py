"""Groups of cells that share one estimate: optimal, greedy and sorted partitions, and what splits of buckets cost."""
