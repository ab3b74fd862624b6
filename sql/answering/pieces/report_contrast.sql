-- Variance of weight * count + other_weight * other_count, from reports, for two disjoint sets; null if {law} has no law of
-- reports.
CASE WHEN {law}.step IS NOT NULL THEN greatest(
            0,
            {law}.alpha * ({weight} ** 2 * {atoms} + {other_weight} ** 2 * {other_atoms})
                - {law}.beta * ({weight} * {atoms} + {other_weight} * {other_atoms}) ** 2
                + {law}.gamma * ({weight} ** 2 * greatest(0, {count}) + {other_weight} ** 2 * greatest(0, {other_count}))
                + {law}.delta * ({weight} * {atoms} + {other_weight} * {other_atoms})
                    * ({weight} * greatest(0, {count}) + {other_weight} * greatest(0, {other_count}))
        ) END
