-- The columns of a change between two counts, from a row of `barred`.
barred.first_estimate,
    barred.second_estimate,
    barred.estimate,
    barred.unbiased,
    barred.noise_error,
    barred.unbiased - barred.half_width AS ci_lower,
    barred.unbiased + barred.half_width AS ci_upper,
    barred.basis,
    barred.cells,
    nullif(concat_ws(
        '; ',
        {missing},
        CASE
            WHEN barred.half_width IS NULL THEN '{no_interval}'
            WHEN abs(barred.estimate - barred.unbiased) > barred.half_width + 1e-6 THEN '{smoothed}'
        END
    ), '') AS note,
    CASE
        WHEN {same_records} THEN '{chance_same}' || {why_revised}
        WHEN {asked} THEN '{chance_within}'
        ELSE '{chance_outside}'
    END AS chance
