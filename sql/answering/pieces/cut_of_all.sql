-- What the bound cut of all rows, from rows of a quality table, {row}: its interval is cut off at 0. One that lies below 0 as a
-- whole does not say that surely nothing was cut: then it reaches as far above 0 as the noise does.
max({row}.position) FILTER ({row}.statistic = 'units') AS seen,
        any_value(greatest(0, {row}.estimate)) FILTER ({row}.statistic = 'cut' AND {row}.axis IS NULL) AS cut,
        any_value(greatest(0, {row}.ci_lower)) FILTER ({row}.statistic = 'cut' AND {row}.axis IS NULL) AS cut_lower,
        any_value(CASE WHEN {row}.ci_upper > 0 THEN {row}.ci_upper ELSE ({row}.ci_upper - {row}.ci_lower) / 2 END)
            FILTER ({row}.statistic = 'cut' AND {row}.axis IS NULL) AS cut_upper
