-- The change of a count from one period to another, with its 95 % interval: one row, from the latest revisions.
-- `chance` says whether the interval leaves chance out. `with_chance := true` adds it: counts then vary as Poisson's do around
-- their means, which is too little where persons have several rows.
-- `capped` tells how many rows the bound cut in each, where quality tables count them.
-- In: the release's table; two periods by their first days, the earlier one first; a box as in dph_box; a list of their two
-- revisions, which may be of one period.
CREATE OR REPLACE MACRO {schema}dph_compare(
    release_name, first_period, second_period, box := '{}', revision := NULL, with_chance := false
) AS TABLE
{opening},
{bins},
{boxes_asked},
{boxes},
{nested},
{atoms},
{sums},
{change_of_two},
{caps}
first_problems AS (
    SELECT 'a comparison takes two periods, by their first days, or two revisions of one period' AS problem
    FROM asked_keys AS k
    HAVING count(k.period) < 2
        OR (SELECT count(*) = 2 AND count(DISTINCT (chosen.period, chosen.revision)) = 1 FROM chosen)
    UNION ALL
    SELECT 'a change of revisions takes two numbers, as in revision := [1, 2]'
    WHERE revision IS NOT NULL AND coalesce(len(TRY_CAST(CAST(revision AS VARCHAR) AS BIGINT[])) <> 2, true)
)
SELECT
    barred.first_period,
    barred.second_period,
    {change},
    {capped_of_two},
    {days_of_two}
FROM ({found}) AS found LEFT JOIN barred ON true
LEFT JOIN caps AS one_cap ON one_cap.place = 1
LEFT JOIN caps AS two_cap ON two_cap.place = 2
WHERE {no_problem}
ORDER BY barred.first_period
