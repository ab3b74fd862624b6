-- The columns of an answer, from a row of `barred`; cut_note, the first case of the note.
barred.estimate,
    barred.unbiased,
    sqrt(coalesce(barred.linear_variance, barred.cells * barred.noise_variance)) AS noise_error,
    {lower} AS ci_lower,
    {upper} AS ci_upper,
    CASE
        WHEN barred.half_width IS NULL THEN 'noise_only'
        WHEN barred.linear_variance IS NULL THEN 'unbiased'
        ELSE 'linear'
    END AS basis,
    barred.cells,
    CASE
        {cut_note}WHEN barred.half_width IS NULL THEN '{no_interval}'
        WHEN abs(barred.estimate - barred.unbiased) > barred.half_width + 1e-6 THEN '{smoothed}'
        WHEN barred.estimate < 0 THEN '{below}'
    END AS note
