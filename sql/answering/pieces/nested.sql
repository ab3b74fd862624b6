-- For linear estimates: the nested nodes in which two cells share noise, and the number of selected positions in each node; or the
-- weighted lines that were measured, whose numbers in place of a width are below 0. The axes in `apart`, if it is given, are handled elsewhere.
-- Other estimates have no nodes.
{% if apart is defined %}apart AS ({{ apart }}),
{% endif %}levels AS (
    SELECT chosen.period, chosen.revision, chosen.grid, v.level, v.axis, v.width, v.coefficient
    FROM {{ table('dph_covariance', release) }} AS v
    JOIN chosen ON chosen.release = v.release AND chosen.period = v.period AND chosen.revision = v.revision
),
lines AS (
    SELECT v.width, v.node, v.position, v.weight
    FROM {{ table('dph_lines', release) }} AS v
    WHERE v.width IN (SELECT levels.width FROM levels)
),
widths AS (
    SELECT DISTINCT names.name, levels.grid, levels.axis, levels.width
    FROM levels, names
),
-- For each axis and width, the sum over the nodes of (selected positions in the node)². Along a weighted line, the squares of the
-- weights in node -1, less the square of the sum of the weights in each other node.
squares AS (
    SELECT
        spans.name, spans.grid, spans.axis, spans.width{{ ', -1 AS first' if rows_by is defined }},
        CASE
            WHEN spans.first > spans.final THEN 0
            WHEN spans.first // spans.width = spans.final // spans.width THEN (spans.final - spans.first + 1.0) ** 2
            ELSE (spans.width - spans.first % spans.width) ** 2.0 + (spans.final % spans.width + 1.0) ** 2
                + (spans.final // spans.width - spans.first // spans.width - 1) * spans.width ** 2.0
        END AS squares
    FROM (
        SELECT
            w.name, w.grid, w.axis, w.width,
            coalesce(allowed.first, 0) AS first, coalesce(allowed.final, sizes.size - 1) AS final
        FROM widths AS w
        JOIN grid_axes AS sizes ON sizes.grid = w.grid AND sizes.axis = w.axis
        LEFT JOIN allowed ON allowed.name = w.name AND allowed.grid = w.grid AND allowed.axis = w.axis
        WHERE allowed.bits IS NULL AND w.width > 0
    ) AS spans
    UNION ALL
    SELECT nodes.name, nodes.grid, nodes.axis, nodes.width{{ ', -1' if rows_by is defined }}, sum(CAST(nodes.wanted AS DOUBLE) ** 2) AS squares
    FROM (
        SELECT w.name, w.grid, w.axis, w.width, positions.position // w.width AS node, count(*) AS wanted
        FROM widths AS w
        JOIN allowed
            ON allowed.name = w.name AND allowed.grid = w.grid AND allowed.axis = w.axis AND allowed.bits IS NOT NULL
        JOIN positions
            ON positions.name = w.name AND positions.grid = w.grid AND positions.axis = w.axis AND positions.is_wanted
        WHERE w.width > 0
        GROUP BY w.name, w.grid, w.axis, w.width, node
    ) AS nodes
    GROUP BY nodes.name, nodes.grid, nodes.axis, nodes.width
    UNION ALL
    SELECT nodes.name, nodes.grid, nodes.axis, nodes.width{{ ', nodes.first' if rows_by is defined }}, fsum(nodes.squares ORDER BY nodes.node) AS squares
    FROM (
        SELECT
            w.name, w.grid, w.axis, w.width, l.node{{ ', coalesce(b.first, -1) AS first' if rows_by is defined }},
            CASE
                WHEN l.node < 0 THEN coalesce(fsum(l.weight ** 2 ORDER BY l.position) FILTER (coalesce(p.is_wanted, true)), 0)
                ELSE -coalesce(fsum(l.weight ORDER BY l.position) FILTER (coalesce(p.is_wanted, true)) ** 2, 0)
            END AS squares
        FROM widths AS w
        JOIN lines AS l ON l.width = w.width
        LEFT JOIN positions AS p
            ON p.name = w.name AND p.grid = w.grid AND p.axis = w.axis AND p.position = l.position
        {{ 'LEFT JOIN by_positions AS b ON b.grid = w.grid AND b.axis = w.axis AND b.position = l.position' if rows_by is defined }}
        GROUP BY w.name, w.grid, w.axis, w.width, l.node{{ ', coalesce(b.first, -1)' if rows_by is defined }}
    ) AS nodes
    GROUP BY nodes.name, nodes.grid, nodes.axis, nodes.width{{ ', nodes.first' if rows_by is defined }}
{%- if rows_by is defined %}
    UNION ALL
    SELECT nodes.name, nodes.grid, nodes.axis, nodes.width, nodes.first, sum(CAST(nodes.wanted AS DOUBLE) ** 2)
    FROM (
        SELECT w.name, w.grid, w.axis, w.width, b.first, b.position // w.width AS node, count(*) AS wanted
        FROM widths AS w JOIN by_positions AS b ON b.grid = w.grid AND b.axis = w.axis
        LEFT JOIN positions AS p
            ON p.name = w.name AND p.grid = w.grid AND p.axis = w.axis AND p.position = b.position
        WHERE w.width > 0 AND coalesce(p.is_wanted, true)
        GROUP BY w.name, w.grid, w.axis, w.width, b.first, node
    ) AS nodes
    GROUP BY nodes.name, nodes.grid, nodes.axis, nodes.width, nodes.first
{%- endif %}
),
nested AS (
    SELECT
        squares.name, levels.grid, levels.period, levels.revision, levels.level{{ ', row_axes.cell' if rows_by is defined }},
        any_value(levels.coefficient) AS coefficient,
        product({{ 'CASE WHEN apart.axis IS NULL THEN squares.squares ELSE 1 END' if apart is defined else 'squares.squares' }} ORDER BY squares.axis) AS squares
    FROM levels
    {% if rows_by is defined %}JOIN row_axes
        ON row_axes.period = levels.period AND row_axes.revision = levels.revision AND row_axes.axis = levels.axis
    {% endif %}JOIN squares
        ON squares.grid = levels.grid AND squares.axis = levels.axis AND squares.width = levels.width
            {{ 'AND squares.first = row_axes.first' if rows_by is defined }}
    {{ 'LEFT JOIN apart ON apart.grid = levels.grid AND apart.axis = levels.axis' if apart is defined }}
    GROUP BY squares.name, levels.grid, levels.period, levels.revision, levels.level{{ ', row_axes.cell' if rows_by is defined }}
)
