-- A range of an axis in words, from its first and its last bin, {low} and {high}: as views and published tables say them.
CASE
            WHEN {low}.calendar THEN (
                SELECT CASE WHEN w.first = w.last THEN w.first ELSE w.first || ' to ' || w.last END
                FROM (
                    SELECT
                        left({low}.lower_end, l.letters) AS first,
                        left(CAST(TRY_CAST({high}.upper_end AS DATE) - 1 AS VARCHAR), l.letters) AS last
                    FROM (
                        SELECT CASE
                            WHEN {low}.lower_end LIKE '%-01-01' AND {high}.upper_end LIKE '%-01-01' THEN 4
                            WHEN {low}.lower_end LIKE '%-01' AND {high}.upper_end LIKE '%-01' THEN 7
                            ELSE 10
                        END AS letters
                    ) AS l
                ) AS w
            )
            WHEN NOT isfinite({low}.bin_lower) AND NOT isfinite({high}.bin_upper) THEN 'all'
            WHEN NOT isfinite({low}.bin_lower) THEN {high}.below
            WHEN NOT isfinite({high}.bin_upper) THEN {low}.above
            WHEN {low}.first = {high}.last THEN {low}.first
            ELSE {low}.first || ' to ' || {high}.last
        END
