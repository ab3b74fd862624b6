-- The release as non-negative whole numbers: one row for each cell, in declared order, for each period (its latest revision).
-- Fitted to the unbiased estimates from the total over each axis and pair of axes down to the cells, so that sums stay near
-- theirs; setting negative estimates to 0 would make sums too large. They have no intervals; `dph_distances` tells how far
-- their sums are from the unbiased ones.
-- Of an amount, whose rows are split between its ends, there are none.
-- In: the release's table; a period by its first day; without it all periods.
{% set answers = 'asked' -%}
{% set boxes = none -%}
{% set columns = 't.*' -%}
CREATE OR REPLACE MACRO {{ schema }}dph_whole(release_name, period := NULL, revision := NULL) AS TABLE
{% include 'pieces/opening.sql' %},
first_problems AS (
    FROM period_problems
    UNION ALL
    SELECT 'there are no whole numbers of period ' || chosen.period || ', whose amount splits rows'
    FROM chosen SEMI JOIN {{ table('dph_bins') }} AS b ON b.grid = chosen.grid AND b.amount
)
SELECT
    t.* EXCLUDE ({{ value_columns }}),
    t.whole_count,
    t.estimate,
    {{ days('chosen.period', 'chosen.period_end') }}
FROM (SELECT min(f.problem) AS problem FROM first_problems AS f) AS found LEFT JOIN (
    dph_cells AS t JOIN chosen
        ON chosen.period = t.period AND chosen.revision = t.revision AND t.cell_number < chosen.cells
) ON true
WHERE {% include 'pieces/no_problem.sql' %}
ORDER BY t.period, t.cell_number
