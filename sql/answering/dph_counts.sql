-- The release as non-negative whole numbers that add up to the published total (the rounded sum of all estimates): one row for
-- each cell, in declared order, for each period (its latest revision). A projection of the estimates: all are lowered by the
-- same amount, negative ones become 0, and the last records go to the largest remainders, the first cells first.
-- For readers and programs that need whole numbers: it has no intervals, and is too large where most cells are empty.
-- In: the release's table; a period by its first day; without it all periods.
CREATE OR REPLACE MACRO {schema}dph_counts(release_name, period := NULL, revision := NULL) AS TABLE
{opening},
-- In 1024ths of a record, so that no sum depends on its order.
parts AS (
    SELECT
        t.period, t.cell_number, CAST(floor(t.estimate * 1024 + 0.5) AS HUGEINT) AS part
    FROM dph_cells AS t JOIN chosen ON chosen.period = t.period AND chosen.revision = t.revision
),
totals AS (
    SELECT p.period, greatest(0, CAST(floor((sum(p.part) + 512) / 1024) AS HUGEINT)) AS total FROM parts AS p
    GROUP BY p.period
),
ranked AS (
    SELECT
        p.period, p.part, totals.total,
        row_number() OVER largest AS number,
        sum(p.part) OVER largest - 1024 * totals.total AS over
    FROM parts AS p JOIN totals ON totals.period = p.period
    WINDOW largest AS (PARTITION BY p.period ORDER BY p.part DESC, p.cell_number ROWS UNBOUNDED PRECEDING)
),
-- The amount by which each cell is lowered, rounded up; cells that fall below 0 become 0.
lowered AS (
    SELECT
        r.period,
        max_by(CASE WHEN r.over > 0 THEN (r.over + r.number - 1) // r.number ELSE r.over // r.number END, r.number) AS by
    FROM ranked AS r
    WHERE r.part * r.number > r.over
    GROUP BY r.period
),
kept AS (
    SELECT p.period, p.cell_number, totals.total, greatest(0, p.part - lowered.by) AS part
    FROM parts AS p JOIN totals ON totals.period = p.period LEFT JOIN lowered ON lowered.period = p.period
    WHERE lowered.by IS NOT NULL
),
counted AS (
    SELECT
        k.period, k.cell_number,
        k.part // 1024 + CASE
            WHEN row_number() OVER (PARTITION BY k.period ORDER BY k.part % 1024 DESC, k.part = 0, k.cell_number)
                <= k.total - sum(k.part // 1024) OVER (PARTITION BY k.period)
            THEN 1
            ELSE 0
        END AS count
    FROM kept AS k
),
first_problems AS (FROM period_problems)
SELECT
    t.* EXCLUDE (cell_number, estimate, unbiased_estimate, ci_lower, ci_upper, group_id),
    CAST(coalesce(c.count, 0) AS BIGINT) AS count,
    t.estimate
FROM (SELECT min(f.problem) AS problem FROM first_problems AS f) AS found LEFT JOIN (
    dph_cells AS t JOIN chosen ON chosen.period = t.period AND chosen.revision = t.revision
    LEFT JOIN counted AS c ON c.period = t.period AND c.cell_number = t.cell_number
) ON true
WHERE {no_problem}
ORDER BY t.period, t.cell_number
