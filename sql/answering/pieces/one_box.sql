-- The rest of a macro that answers for one box, {box}: one row for each publication. If the box cuts bins, the estimate spreads
-- their rows evenly, and the interval runs from the lower end for the bins within the box to the upper end for those around it.
{bins},
boxes AS (SELECT 'box' AS source, {box} AS box),
{boxes},
{nested},
{atoms},
{sums},
reached AS (
    SELECT summed.*, {reach} AS half_width FROM summed
),
barred AS (
    SELECT
        r.* EXCLUDE (estimate, unbiased, spread_estimate, spread_unbiased),
        CASE WHEN r.is_cut THEN coalesce(r.spread_estimate, 0) ELSE r.estimate END AS estimate,
        CASE WHEN r.is_cut THEN coalesce(r.spread_unbiased, r.unbiased) ELSE r.unbiased END AS unbiased,
        coalesce(within.unbiased - within.half_width, r.unbiased - r.half_width) AS ci_lower,
        r.unbiased + r.half_width AS ci_upper,
        (
            SELECT string_agg(cut.axis, ', ' ORDER BY cut.stride DESC)
            FROM (SELECT DISTINCT cuts.axis, cuts.stride FROM cuts WHERE cuts.grid = r.grid) AS cut
        ) AS cut_axes
    FROM reached AS r
    LEFT JOIN reached AS within
        ON within.name = 'inner' AND within.period = r.period AND within.revision = r.revision
    WHERE r.name = 'around'
),
first_problems AS (SELECT CAST(NULL AS VARCHAR) AS problem)
SELECT
    barred.period,
    barred.revision,
    {answer_of_cut}
FROM ({found}) AS found LEFT JOIN barred ON true
WHERE {no_problem}
ORDER BY barred.period
