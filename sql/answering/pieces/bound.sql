-- Half the width of the interval of a linear estimate by Chernoff's inequality, from a row of `{row}`: variance, missed (the
-- probability that the interval misses), noise_variance and decay of a draw. No draw may have a weight above 1.
list_min(list_transform(
            {trials},
            lambda u: (
                ln(2 / {row}.missed) - {row}.variance / {row}.noise_variance
                    * ln(1 - 2 * {row}.noise_variance * sinh(u * {row}.decay / 2) ** 2)
            ) / (u * {row}.decay)
        ))
