-- Half the width of the interval of a linear estimate by Chernoff's inequality, from a row of `v`: variance, missed (the
-- probability that the interval misses), noise_variance and decay of a draw. No draw may have a weight above 1.
list_min(list_transform(
            {trials},
            lambda u: (
                ln(2 / v.missed) - v.variance / v.noise_variance
                    * ln(1 - 2 * v.noise_variance * sinh(u * v.decay / 2) ** 2)
            ) / (u * v.decay)
        ))
