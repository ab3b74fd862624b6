-- Half the width of the interval for a count from reports: `factor` standard deviations, and a correction for few bits. From a
-- row of `{row}`: its variance, the slope (change of the variance per record), and the step (change of the estimate by one bit).
{factor} ** 2 * ({row}.slope + {row}.step / 3) / 2 + sqrt(
            ({factor} ** 2 * ({row}.slope + {row}.step / 3) / 2) ** 2 + {factor} ** 2 * {row}.{variance}
        )
