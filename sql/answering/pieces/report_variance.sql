-- Variance of a count from reports, at the estimated count; null if {law} has no law of reports.
CASE WHEN {law}.step IS NOT NULL THEN greatest(
            0,
            {law}.alpha * {atoms} - {law}.beta * {atoms} ** 2
                + {law}.gamma * greatest(0, {count}) + {law}.delta * {atoms} * greatest(0, {count})
        ) END
