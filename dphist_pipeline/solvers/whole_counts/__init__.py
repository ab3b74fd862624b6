"""Non-negative whole numbers near noisy sums: fitted margins, rounding of nested totals, populations."""
