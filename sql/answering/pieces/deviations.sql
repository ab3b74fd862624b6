-- Half the width of the 95 % interval of a weighted sum, in its standard deviations: from its least number of draws, `draws`,
-- that is its variance over that of one draw with the largest weight.
coalesce(
            (
                SELECT max_by(w.deviations, w.draws)
                FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_linear_widths')) AS w
                WHERE w.noise_scale = {row}.noise_scale AND {row}.is_nested
                    AND w.draws <= greatest(1, {draws} * (1 + 1e-9))
            ),
            (
                SELECT max_by(w.deviations, w.cells)
                FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_half_widths')) AS w
                WHERE w.noise_scale = {row}.noise_scale AND NOT {row}.is_nested
                    AND w.cells <= greatest(1, {draws} * (1 + 1e-9))
            )
        )
