-- For linear estimates: the covariance of a part with the whole that it lies in, both boxes. Other estimates have no nodes.
-- Along an axis and width, (positions of the part) * (positions of the whole) is summed over the nodes.
whole_nodes AS (
    SELECT p.grid, p.axis, w.width, p.position // w.width AS node, count(*) AS held
    FROM positions AS p JOIN widths AS w ON w.name = p.name AND w.grid = p.grid AND w.axis = p.axis
    WHERE p.name = 'whole' AND p.is_wanted
    GROUP BY p.grid, p.axis, w.width, node
),
part_nodes AS (
    SELECT s.grid, s.axis, s.width, s.whole_first, s.whole_final, s.has_gaps, unnest(s.nodes) AS found
    FROM (
        SELECT
            w.grid, w.axis, w.width,
            coalesce(whole.first, 0) AS whole_first, coalesce(whole.final, sizes.size - 1) AS whole_final,
            whole.bits IS NOT NULL AS has_gaps,
            coalesce(part.first, 0) AS first, coalesce(part.final, sizes.size - 1) AS final,
            CASE
                WHEN part.bits IS NOT NULL THEN (
                    SELECT list({'node': n.node, 'held': n.held, 'times': 1})
                    FROM (
                        SELECT p.position // w.width AS node, count(*) AS held
                        FROM positions AS p
                        WHERE p.name = 'part' AND p.grid = w.grid AND p.axis = w.axis AND p.is_wanted
                        GROUP BY node
                    ) AS n
                )
                WHEN first > final THEN []
                WHEN first // w.width = final // w.width
                    THEN [{'node': first // w.width, 'held': final - first + 1, 'times': 1}]
                -- Nodes between the first and the last lie in both entirely.
                ELSE [
                    {'node': first // w.width, 'held': w.width - first % w.width, 'times': 1},
                    {'node': final // w.width, 'held': final % w.width + 1, 'times': 1},
                    {'node': NULL, 'held': w.width, 'times': final // w.width - first // w.width - 1}
                ]
            END AS nodes
        FROM widths AS w
        JOIN (SELECT DISTINCT axes.grid, axes.axis, axes.size FROM axes) AS sizes
            ON sizes.grid = w.grid AND sizes.axis = w.axis
        LEFT JOIN allowed AS part ON part.name = 'part' AND part.grid = w.grid AND part.axis = w.axis
        LEFT JOIN allowed AS whole ON whole.name = 'whole' AND whole.grid = w.grid AND whole.axis = w.axis
        WHERE w.name = 'part'
    ) AS s
),
products AS (
    SELECT
        p.grid, p.axis, p.width,
        sum(
            CAST(p.found.held * p.found.times AS DOUBLE) * CASE
                WHEN p.found.node IS NULL THEN p.width
                WHEN p.has_gaps THEN n.held
                ELSE least(p.whole_final, (p.found.node + 1) * p.width - 1) - greatest(p.whole_first, p.found.node * p.width) + 1
            END
        ) AS product
    FROM part_nodes AS p
    LEFT JOIN whole_nodes AS n
        ON n.grid = p.grid AND n.axis = p.axis AND n.width = p.width AND n.node = p.found.node
    GROUP BY p.grid, p.axis, p.width
),
covariances AS (
    SELECT l.period, l.revision, fsum(l.coefficient * l.products) AS covariance
    FROM (
        SELECT
            levels.period, levels.revision, levels.level,
            any_value(levels.coefficient) AS coefficient, product(products.product) AS products
        FROM levels JOIN products
            ON products.grid = levels.grid AND products.axis = levels.axis AND products.width = levels.width
        GROUP BY levels.period, levels.revision, levels.level
    ) AS l
    GROUP BY l.period, l.revision
)
