-- The note of a sum over periods or of a change between them, from a row of `barred`.
nullif(concat_ws(
        '; ',
        {missing},
        CASE
            WHEN barred.half_width IS NULL THEN '{no_interval}'
            WHEN abs(barred.estimate - barred.unbiased) > barred.half_width + 1e-6 THEN '{smoothed}'{below_zero}
        END
    ), '')
