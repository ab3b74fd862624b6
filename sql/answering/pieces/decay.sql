-- By how much the logarithm of the probability of a draw falls from one whole number to the next: one over its scale, a fraction
-- as text.
coalesce(TRY_CAST(split_part({scale}, '/', 2) AS DOUBLE), 1) / TRY_CAST(split_part({scale}, '/', 1) AS DOUBLE)
