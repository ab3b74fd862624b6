-- How far the sums of `dph_whole` are from the unbiased estimates: for each period (its latest revision), one row for the total,
-- each axis, each pair of axes and the cells. `half_width` is that of the band that holds all these sums with 95 %.
-- In: the release's table; a period by its first day; without it all periods.
CREATE OR REPLACE MACRO {schema}dph_distances(release_name, period := NULL, revision := NULL) AS TABLE
{opening},
first_problems AS (FROM period_problems)
SELECT d.period, d.revision, d.sums_by, d.sums, d.farthest, d.half_width, d.outside,
    {days_of_chosen}
FROM (SELECT min(f.problem) AS problem FROM first_problems AS f) AS found LEFT JOIN (
    query_table(regexp_replace(release_name, '[^.]*$', 'dph_distances')) AS d
    JOIN chosen ON chosen.release = d.release AND chosen.period = d.period AND chosen.revision = d.revision
) ON true
-- A publication without unbiased estimates has no rows; `AND` might test that before the problem is told.
WHERE ({no_problem}) = (d.period IS NOT NULL)
ORDER BY d.period, d.sums, d.sums_by
