-- How far the sums of `dph_whole` are from the unbiased estimates: for each period (its latest revision), one row for the total,
-- each axis, each pair of axes and the cells. `half_width` is that of the band that holds all these sums with 95 %.
-- In: the release's table; a period by its first day; without it all periods.
{% set answers = 'asked' -%}
{% set boxes = none -%}
CREATE OR REPLACE MACRO {{ schema }}dph_distances(release_name, period := NULL, revision := NULL) AS TABLE
{% include 'pieces/opening.sql' %},
first_problems AS (FROM period_problems)
SELECT d.period, d.revision, d.sums_by, d.sums, d.farthest, d.half_width, d.outside,
    {{ days('chosen.period', 'chosen.period_end') }}
FROM (SELECT min(f.problem) AS problem FROM first_problems AS f) AS found LEFT JOIN (
    {{ table('dph_distances') }} AS d
    JOIN chosen ON chosen.release = d.release AND chosen.period = d.period AND chosen.revision = d.revision
) ON true
-- A publication without unbiased estimates has no rows; `AND` might test that before the problem is told.
WHERE ({% include 'pieces/no_problem.sql' %}) = (d.period IS NOT NULL)
ORDER BY d.period, d.sums, d.sums_by
