-- For linear estimates: the covariance of `part` with the `whole` that it lies in, both boxes. Other estimates have no nodes.
-- Along an axis and width, (positions of the part) * (positions of the whole) is summed over the nodes.
node_spans AS (
    SELECT
        w.grid, w.axis, w.width,
        coalesce(part.first, 0) AS part_first, coalesce(part.final, sizes.size - 1) AS part_final,
        part.bits IS NOT NULL AS part_has_gaps,
        coalesce(whole.first, 0) AS whole_first, coalesce(whole.final, sizes.size - 1) AS whole_final,
        whole.bits IS NOT NULL AS whole_has_gaps
    FROM widths AS w
    JOIN grid_axes AS sizes ON sizes.grid = w.grid AND sizes.axis = w.axis
    LEFT JOIN allowed AS part ON part.name = 'part' AND part.grid = w.grid AND part.axis = w.axis
    LEFT JOIN allowed AS whole ON whole.name = 'whole' AND whole.grid = w.grid AND whole.axis = w.axis
    WHERE w.name = 'part' AND w.width > 0
),
-- The nodes of the part, with its positions in each. Of a range without gaps the nodes between the first and the last are one
-- row without a number: they lie in both boxes entirely.
part_nodes AS (
    SELECT s.grid, s.axis, s.width, p.position // s.width AS node, count(*) AS held, 1 AS times
    FROM node_spans AS s JOIN positions AS p
        ON p.name = 'part' AND p.grid = s.grid AND p.axis = s.axis AND p.is_wanted
    WHERE s.part_has_gaps
    GROUP BY s.grid, s.axis, s.width, p.position // s.width
    UNION ALL
    SELECT s.grid, s.axis, s.width, s.part_first // s.width, least(s.part_final + 1, (s.part_first // s.width + 1) * s.width)
        - s.part_first, 1
    FROM node_spans AS s
    WHERE NOT s.part_has_gaps AND s.part_first <= s.part_final
    UNION ALL
    SELECT s.grid, s.axis, s.width, s.part_final // s.width, s.part_final % s.width + 1, 1
    FROM node_spans AS s
    WHERE NOT s.part_has_gaps AND s.part_first // s.width < s.part_final // s.width
    UNION ALL
    SELECT s.grid, s.axis, s.width, NULL, s.width, s.part_final // s.width - s.part_first // s.width - 1
    FROM node_spans AS s
    WHERE NOT s.part_has_gaps AND s.part_first // s.width + 1 < s.part_final // s.width
),
whole_nodes AS (
    SELECT s.grid, s.axis, s.width, p.position // s.width AS node, count(*) AS held
    FROM node_spans AS s JOIN positions AS p
        ON p.name = 'whole' AND p.grid = s.grid AND p.axis = s.axis AND p.is_wanted
    WHERE s.whole_has_gaps
    GROUP BY s.grid, s.axis, s.width, p.position // s.width
),
products AS (
    SELECT
        p.grid, p.axis, p.width, -1 AS first,
        sum(
            CAST(p.held AS DOUBLE) * p.times * CASE
                WHEN p.node IS NULL THEN p.width
                WHEN s.whole_has_gaps THEN n.held
                ELSE least(s.whole_final, (p.node + 1) * p.width - 1) - greatest(s.whole_first, p.node * p.width) + 1
            END
        ) AS product
    FROM part_nodes AS p
    JOIN node_spans AS s ON s.grid = p.grid AND s.axis = p.axis AND s.width = p.width
    LEFT JOIN whole_nodes AS n
        ON n.grid = p.grid AND n.axis = p.axis AND n.width = p.width AND n.node = p.node
    GROUP BY p.grid, p.axis, p.width
    UNION ALL
    -- Along a weighted line; the part lies in the whole, so every position by itself counts where the part has it.
    SELECT s.grid, s.axis, s.width, s.first, fsum(s.product ORDER BY s.node) AS product
    FROM (
        SELECT
            w.grid, w.axis, w.width, coalesce(b.first, -1) AS first, l.node,
            CASE
                WHEN l.node < 0 THEN coalesce(fsum(l.weight ** 2 ORDER BY l.position) FILTER (coalesce(part.is_wanted, true)), 0)
                ELSE -coalesce(fsum(l.weight ORDER BY l.position) FILTER (coalesce(part.is_wanted, true)), 0)
                    * coalesce(fsum(l.weight ORDER BY l.position) FILTER (coalesce(whole.is_wanted, true)), 0)
            END AS product
        FROM widths AS w
        JOIN lines AS l ON l.width = w.width
        LEFT JOIN by_positions AS b ON b.grid = w.grid AND b.axis = w.axis AND b.position = l.position
        LEFT JOIN positions AS part
            ON part.name = 'part' AND part.grid = w.grid AND part.axis = w.axis AND part.position = l.position
        LEFT JOIN positions AS whole
            ON whole.name = 'whole' AND whole.grid = w.grid AND whole.axis = w.axis AND whole.position = l.position
        WHERE w.name = 'part'
        GROUP BY w.grid, w.axis, w.width, coalesce(b.first, -1), l.node
    ) AS s
    GROUP BY s.grid, s.axis, s.width, s.first
    UNION ALL
    -- Along an axis that rows are asked by.
    SELECT s.grid, s.axis, s.width, s.first, sum(CAST(s.part AS DOUBLE) * s.whole)
    FROM (
        SELECT
            w.grid, w.axis, w.width, b.first, b.position // w.width AS node,
            count(*) FILTER (coalesce(part.is_wanted, true)) AS part, count(*) FILTER (coalesce(whole.is_wanted, true)) AS whole
        FROM widths AS w
        JOIN by_positions AS b ON b.grid = w.grid AND b.axis = w.axis
        LEFT JOIN positions AS part
            ON part.name = 'part' AND part.grid = w.grid AND part.axis = w.axis AND part.position = b.position
        LEFT JOIN positions AS whole
            ON whole.name = 'whole' AND whole.grid = w.grid AND whole.axis = w.axis AND whole.position = b.position
        WHERE w.name = 'part' AND w.width > 0
        GROUP BY w.grid, w.axis, w.width, b.first, node
    ) AS s
    GROUP BY s.grid, s.axis, s.width, s.first
),
covariances AS (
    SELECT l.period, l.revision, l.cell, fsum(l.coefficient * l.product ORDER BY l.level) AS covariance
    FROM (
        SELECT
            levels.period, levels.revision, levels.level, r.cell,
            any_value(levels.coefficient) AS coefficient, product(products.product ORDER BY products.axis) AS product
        FROM levels
        JOIN row_axes AS r ON r.period = levels.period AND r.revision = levels.revision AND r.axis = levels.axis
        JOIN products
            ON products.grid = levels.grid AND products.axis = levels.axis AND products.width = levels.width
                AND products.first = r.first
        GROUP BY levels.period, levels.revision, levels.level, r.cell
    ) AS l
    GROUP BY l.period, l.revision, l.cell
)
