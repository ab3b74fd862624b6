-- Half the width of the interval of a linear estimate by Chernoff's inequality, from a row of `{row}`: variance, missed (the
-- probability that the interval misses), noise_scale and noise_variance of a draw. No draw may have a weight above 1.
list_min(list_transform(
            (
                SELECT m.moments FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_moments')) AS m
                WHERE m.noise_scale = {row}.noise_scale
            ),
            lambda u: (ln(2 / {row}.missed) + {row}.variance / {row}.noise_variance * u.log_moment) / u.rate
        ))
