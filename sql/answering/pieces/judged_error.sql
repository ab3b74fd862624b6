-- What reliability judges: the noise, or a quarter of the interval where cut bins make it far wider than noise does.
CASE
    WHEN barred.ci_upper - barred.ci_lower > 6 * barred.noise_error THEN (barred.ci_upper - barred.ci_lower) / 4
    ELSE barred.noise_error
END
