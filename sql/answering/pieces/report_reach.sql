-- How far a count from reports reaches: `factor` standard deviations, and what a few bits need. Of a row of `{row}`: its
-- variance, the slope by which that changes with a record, and the step that a bit moves it.
{factor} ** 2 * ({row}.slope + {row}.step / 3) / 2 + sqrt(
            ({factor} ** 2 * ({row}.slope + {row}.step / 3) / 2) ** 2 + {factor} ** 2 * {row}.{variance}
        )
