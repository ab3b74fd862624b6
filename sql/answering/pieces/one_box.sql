-- The rest of a macro that answers for one box: one row for each publication. If the box cuts bins, the estimate spreads
-- their rows evenly, and the interval runs from the lower end for the bins within the box to the upper end for those around it.
{bins},
{boxes_asked},
{boxes},
{nested},
{atoms},
{sums},
sets AS (
    SELECT s.name AS id, s.period, s.revision, s.cells, s.groups FROM summed AS s
),
{group_sums},
reaching AS (
    SELECT summed.*, {reach} AS reach FROM summed
),
reached AS (
    {ends}
),
barred AS (
    SELECT
        r.* EXCLUDE (estimate, unbiased, spread_estimate, spread_unbiased, basis, noise_error, ci_lower, ci_upper),
        r.ci_upper IS NOT NULL AND (NOT r.is_cut OR within.ci_lower IS NOT NULL) AS has_ends,
        CASE WHEN r.is_cut THEN coalesce(r.spread_estimate, 0) ELSE r.estimate END AS estimate,
        CASE WHEN r.is_cut THEN r.spread_unbiased ELSE r.unbiased END AS unbiased,
        CASE WHEN has_ends THEN r.noise_error END AS noise_error,
        CASE WHEN has_ends THEN coalesce(within.ci_lower, r.ci_lower) END AS ci_lower,
        CASE WHEN has_ends THEN r.ci_upper END AS ci_upper,
        CASE WHEN has_ends THEN r.basis ELSE 'noise_only' END AS basis,
        cut.axes AS cut_axes, cut.meant
    FROM reached AS r
    LEFT JOIN (
        SELECT
            c.grid, string_agg(c.axis, ', ' ORDER BY c.stride DESC) AS axes,
            string_agg(meant.range, ' and ' ORDER BY c.stride DESC) AS meant
        FROM (SELECT DISTINCT cuts.grid, cuts.axis, cuts.stride FROM cuts) AS c
        LEFT JOIN meant ON meant.grid = c.grid AND meant.axis = c.axis
        GROUP BY c.grid
    ) AS cut ON cut.grid = r.grid
    LEFT JOIN reached AS within
        ON within.name = 'inner' AND within.period = r.period AND within.revision = r.revision
    WHERE r.name = 'around'
),
first_problems AS (SELECT CAST(NULL AS VARCHAR) AS problem)
SELECT
    barred.period,
    barred.revision,
    {answer_of_cut},
    {days_flowing}
FROM ({found}) AS found LEFT JOIN barred ON true
WHERE {no_problem}
ORDER BY barred.period
