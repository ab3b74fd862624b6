-- The rows that a question is asked by, one for each combination of values of some axes or levels in which every box has cells; without
-- such axes there is one row. `cell` numbers a row: it is the cell at the first position of its values along these axes, and at
-- position 0 along the others. `called` says its values, the same in every grid. In: rows_by, SQL for a list of names.
{% set axes = rows_by -%}
by_positions AS (
    SELECT g.*, min(g.position) OVER (PARTITION BY g.grid, g.axis, g.called) AS first
    FROM (
        SELECT
            b.grid, b.level_of AS axis, b.stride, b.size, b.position,
            list(coalesce('=' || b.category, b.lower_end || ' to ' || b.upper_end, 'other') ORDER BY b.axis) AS called
        FROM bins AS b
        WHERE list_contains(TRY_CAST({{ rows_by }} AS VARCHAR[]), b.axis)
        GROUP BY b.grid, b.level_of, b.stride, b.size, b.position
    ) AS g
),
-- No axis can have the name of a column that begins with an underscore.
grouped AS MATERIALIZED (
    SELECT
        COLUMNS(
            lambda c: c IN ('period', 'revision', '_name')
                OR list_contains(TRY_CAST({{ rows_by }} AS VARCHAR[]), regexp_replace(c, '_(lower|upper|label)$', ''))
                OR list_contains(TRY_CAST({{ rows_by }} AS VARCHAR[]), c)
        ),
        min(cell_number) AS _first, count(*) AS _cells, {{ exact_sum('estimate') }} AS _estimate, {{ exact_sum('unbiased_estimate') }} AS _unbiased,
        histogram(_known_group) FILTER (_known_group IS NOT NULL) AS _known
    FROM (SELECT c.name AS _name, t.* FROM conditions AS c JOIN dph_cells AS t ON {{ inside() }}) AS cells
    GROUP BY ALL
),
keyed AS (
    SELECT
        g._name AS name, g.period, g.revision, g._first, any_value(g._cells) AS cells,
        any_value(g._estimate) AS estimate, any_value(g._unbiased) AS unbiased, any_value(g._known) AS known_groups,
        coalesce(sum(p.first * p.stride), 0) AS cell,
        coalesce(list(p.called ORDER BY p.axis) FILTER (p.called IS NOT NULL), []) AS called
    FROM grouped AS g
    JOIN chosen AS c ON c.period = g.period AND c.revision = g.revision
    LEFT JOIN (SELECT DISTINCT b.grid, b.axis, b.stride, b.size FROM by_positions AS b) AS a ON a.grid = c.grid
    LEFT JOIN by_positions AS p
        ON p.grid = a.grid AND p.axis = a.axis AND p.position = (g._first // a.stride) % a.size
    GROUP BY g._name, g.period, g.revision, g._first
),
asked_rows AS (
    SELECT DISTINCT
        c.period, c.revision, c.grid, coalesce(k.cell, 0) AS cell, coalesce(k.called, []) AS called, k.cell IS NULL AS is_empty
    FROM chosen AS c LEFT JOIN (
        SELECT keyed.period, keyed.revision, keyed.cell, any_value(keyed.called) AS called
        FROM keyed
        WHERE keyed.name <> 'both'
        GROUP BY keyed.period, keyed.revision, keyed.cell
        HAVING count(*) = (SELECT count(*) FROM names WHERE names.name <> 'both')
    ) AS k ON k.period = c.period AND k.revision = c.revision
),
-- Each row with each axis: where its values begin, -1 along other axes.
row_axes AS (
    SELECT
        r.period, r.revision, r.grid, r.cell, a.axis, a.size,
        CASE WHEN a.is_asked THEN (r.cell // a.stride) % a.size ELSE -1 END AS first
    FROM asked_rows AS r JOIN (
        SELECT
            b.grid, b.level_of AS axis, any_value(b.stride) AS stride, any_value(b.size) AS size,
            bool_or(coalesce(list_contains(TRY_CAST({{ rows_by }} AS VARCHAR[]), b.axis), false)) AS is_asked
        FROM bins AS b
        GROUP BY b.grid, b.level_of
    ) AS a ON a.grid = r.grid
),
wanted_axes AS (
    SELECT a.*, coalesce(list_contains(TRY_CAST({{ rows_by }} AS VARCHAR[]), a.axis), false) AS is_asked
    FROM grid_axes AS a
),
by_problems AS (
    {% include 'pieces/axis_problems.sql' %}
),
all_problems AS (
    FROM problems
    UNION ALL
    SELECT 'no value by ' || array_to_string(TRY_CAST({{ rows_by }} AS VARCHAR[]), ', ') || ' has cells in every box'
    FROM asked_rows AS r WHERE r.is_empty AND len(TRY_CAST({{ rows_by }} AS VARCHAR[])) > 0
)
