-- Half the width of the interval for a row of `summed`, at 95 %, or at the level at which two intervals hold together.
CASE
        WHEN NOT summed.has_bars THEN NULL
        WHEN summed.cells = 0 THEN 0
        WHEN summed.linear_variance IS NULL THEN (
            SELECT min(w.{half_width})
            FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_half_widths')) AS w
            WHERE w.noise_scale = summed.noise_scale AND w.cells >= summed.cells
        )
        WHEN summed.step IS NOT NULL THEN {report_reach}
        -- The last entry whose variance is at most that of the row; a rounding error must not decide it.
        ELSE sqrt(summed.linear_variance) * (
            SELECT max_by(w.{deviations}, w.draws)
            FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_linear_widths')) AS w
            WHERE w.noise_scale = summed.noise_scale
                AND w.draws <= greatest(1, summed.linear_variance / summed.noise_variance * (1 + 1e-9))
        )
    END
