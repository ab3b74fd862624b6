-- Variance of a count from reports, with the estimate for the true count; null where {law} has no law of reports.
CASE WHEN {law}.step IS NOT NULL THEN greatest(
            0,
            {law}.alpha * {atoms} - {law}.beta * {atoms} ** 2
                + ({law}.gamma + {law}.delta * {atoms}) * greatest(0, {count})
        ) END
