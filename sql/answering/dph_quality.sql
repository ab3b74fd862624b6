-- What was bought about the rows behind the counts, with 95 % intervals: one row for each number, for each period (its latest
-- revision), in order. `units` counts units by the rows that they hold, `rows` the rows by where they fell, `unparsed` and
-- `undeclared` the rows whose value on an axis is missing or no declared one, `cut` the rows that the bound keeps out, `misfiled`
-- (with `misfiled: true`) the rows in the period's own files that no period looks for there, `left_out` (in an individual account
-- that sets a share aside) the units that this publication was the first of the calendar year to leave out. Of each
-- unit, at most the first `rows` rows that the spec declares are seen; numbers and ends of intervals may be negative. `reliability`
-- is that of any count: many numbers of noise are among them, and each interval holds by itself. `most` is the largest number of
-- rows that the published counts allow where rows went to `other` or were dropped, with what the cap cuts; it holds with 99.5 % for
-- all lines together, and null says that nothing is known. A number above it is noise, and `poor`.
-- In: the release's table, or the name of a family for what is told of all its tables; a period by its first day, without it all
-- periods that have such a table; a revision.
{% set answers = 'family' -%}
{% set boxes = none -%}
CREATE OR REPLACE MACRO {{ schema }}dph_quality(release_name, period := NULL, revision := NULL) AS TABLE
{% include 'pieces/opening.sql' %},
bought AS (
    -- The tables of a family have the same numbers, but rows cut along an axis only where they have that axis.
    SELECT DISTINCT ON (q.period, q.revision, q.statistic, q.axis, q.position, q.category)
        q.*, sqrt(q.noise_variance) AS noise_error,
        CASE WHEN q.release <> {{ name_of() }} AND q.statistic = 'cut' THEN q.axis END AS cut_axis
    FROM {{ table('dph_quality_rows') }} AS q
    WHERE q.release = {{ name_of() }} OR q.release IN (
        SELECT r.release FROM {{ table('dph_releases') }} AS r
        WHERE r.family = {{ name_of() }}
    )
    ORDER BY q.number
),
first_problems AS (
    FROM period_problems
    UNION ALL
    SELECT 'no period asked for has a quality table: `quality` was not in its spec' AS problem
    WHERE NOT EXISTS (FROM period_problems WHERE problem IS NOT NULL) AND NOT EXISTS (
        FROM bought JOIN chosen ON chosen.period = bought.period AND chosen.revision = bought.revision
    )
)
SELECT
    b.period,
    b.revision,
    b.statistic,
    b.axis,
    b.position,
    b.category,
    b.estimate,
    b.ci_lower,
    b.ci_upper,
    b.noise_scale,
    b.most,
    CASE
        WHEN b.ci_lower <= 0 OR b.estimate > b.most OR b.noise_error > {{ most_fair }} * b.estimate THEN 'poor'
        WHEN b.noise_error > {{ most_good }} * b.estimate THEN 'fair'
        ELSE 'good'
    END AS reliability,
    {{ days('chosen.period', 'chosen.period_end') }}
FROM (SELECT min(f.problem) AS problem FROM first_problems AS f) AS found LEFT JOIN (
    bought AS b JOIN chosen ON chosen.period = b.period AND chosen.revision = b.revision
) ON true
WHERE {% include 'pieces/no_problem.sql' %}
ORDER BY b.period, b.cut_axis NULLS FIRST, b.number
