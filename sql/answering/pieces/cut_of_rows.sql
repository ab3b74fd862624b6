-- The rows cut in each row of `grouped`, from the quality table: rows of `cut_of_rows`, if `cut_told` asks. They are told where rows and box differ
-- from all cells along one axis at most, and the table has that axis. Conditions that cover all positions of an axis are none.
-- Half widths of independent numbers are added up as their standard deviations are.
cut_axes AS (
    SELECT
        chosen.release, chosen.period, chosen.revision, chosen.grid, min(a.axis) AS axis, any_value(a.stride) AS stride,
        any_value(a.size) AS size, coalesce(bool_or(a.is_asked), false) AS is_asked
    FROM chosen LEFT JOIN (
        SELECT w.grid, w.level_of AS axis, w.stride, w.size, true AS is_asked FROM wanted_axes AS w WHERE w.is_asked
        UNION
        SELECT allowed.grid, allowed.axis, allowed.stride, allowed.size, false
        FROM allowed WHERE allowed.wanted < allowed.size
    ) AS a ON a.grid = chosen.grid
    GROUP BY chosen.release, chosen.period, chosen.revision, chosen.grid
    HAVING count(DISTINCT a.axis) <= 1
),
cut_of_rows AS (
    SELECT g.period, g._first, sum(q.estimate) AS cut, sqrt(sum(((q.ci_upper - q.ci_lower) / 2) ** 2)) AS reach
    FROM grouped AS g
    JOIN cut_axes AS o ON o.period = g.period
    LEFT JOIN rolled
        ON rolled.grid = o.grid AND rolled.axis = o.axis AND rolled.first = (g._first // o.stride) % o.size
    LEFT JOIN positions AS p ON NOT o.is_asked AND p.grid = o.grid AND p.axis = o.axis AND p.is_wanted
    JOIN {{ table('dph_quality_rows') }} AS q
        ON q.release = o.release AND q.period = o.period AND q.revision = o.revision AND q.statistic = 'cut'
            AND q.axis IS NOT DISTINCT FROM o.axis
            AND q.position IS NOT DISTINCT FROM coalesce(rolled.position, p.position, (g._first // o.stride) % o.size)
    WHERE cut_told = 'yes'
    GROUP BY g.period, g._first
),
