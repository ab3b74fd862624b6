-- The columns of an answer, from a row of `barred`.
barred.estimate,
    sqrt(coalesce(barred.linear_variance, barred.cells * barred.noise_variance)) AS noise_error,
    CASE WHEN barred.half_width IS NOT NULL THEN greatest(0, barred.unbiased - barred.half_width) END AS ci_lower,
    CASE WHEN barred.half_width IS NOT NULL THEN greatest(0, barred.unbiased + barred.half_width) END AS ci_upper,
    CASE
        WHEN barred.half_width IS NULL THEN 'noise_only'
        WHEN barred.linear_variance IS NULL THEN 'unbiased'
        ELSE 'linear'
    END AS basis,
    barred.cells,
    CASE
        WHEN barred.half_width IS NULL THEN '{no_interval}'
        WHEN abs(barred.estimate - barred.unbiased) > barred.half_width + 1e-6 THEN '{smoothed}'
        WHEN barred.estimate < 0 THEN '{below}'
    END AS note
