-- Half the width of the interval for a row of `summed`: `one` at 95 %, `two` at the level at which two intervals hold together.
CASE
        WHEN NOT summed.has_bars THEN NULL
        WHEN summed.cells = 0 THEN {'one': 0.0, 'two': 0.0}
        WHEN summed.linear_variance IS NULL THEN (
            SELECT min_by({'one': CAST(w.half_width AS DOUBLE), 'two': CAST(w.half_width_of_two AS DOUBLE)}, w.cells)
            FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_half_widths')) AS w
            WHERE w.noise_scale = summed.noise_scale AND w.cells >= summed.cells
        )
        WHEN summed.step IS NOT NULL THEN {'one': {report_reach}, 'two': {report_reach_of_two}}
        -- The last entry whose variance is at most that of the row; a rounding error must not decide it.
        ELSE (
            SELECT max_by(
                {
                    'one': sqrt(summed.linear_variance) * w.deviations,
                    'two': sqrt(summed.linear_variance) * w.deviations_of_two
                },
                w.draws
            )
            FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_linear_widths')) AS w
            WHERE w.noise_scale = summed.noise_scale
                AND w.draws <= greatest(1, summed.linear_variance / summed.noise_variance * (1 + 1e-9))
        )
    END
