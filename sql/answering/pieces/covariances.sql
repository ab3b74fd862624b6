-- Covariances of the noise of weighted sums of unbiased cells, which are products of weights along the axes: one row for each
-- pair of names and publication. No rows for estimates from reports, whose variance depends on the counts.
-- In: weights (name, grid, axis, position, weight), with every axis of the grid; positions that are left out have weight 0.
inside_positions AS (
    SELECT names.name, a.grid, a.axis, a.position{{ ', coalesce(b.first, -1) AS first' if rows_by is defined }}
    FROM (SELECT DISTINCT bins.grid, bins.level_of AS axis, bins.position FROM bins) AS a
    JOIN (SELECT DISTINCT named.name FROM named) AS names ON true
    LEFT JOIN positions AS p
        ON p.name = names.name AND p.grid = a.grid AND p.axis = a.axis AND p.position = a.position
    {% if rows_by is defined %}LEFT JOIN by_positions AS b ON b.grid = a.grid AND b.axis = a.axis AND b.position = a.position
    {% endif %}WHERE coalesce(p.is_wanted, true)
),
weights AS ({{ weights }}),
-- Independent noise is one level, of nodes of one cell each.
noise_levels AS (
    SELECT c.period, c.revision, c.grid, v.level, v.axis, v.width, v.coefficient
    FROM {{ table('dph_covariance') }} AS v
    JOIN chosen AS c ON c.release = v.release AND c.period = v.period AND c.revision = v.revision
    UNION ALL
    SELECT c.period, c.revision, c.grid, 0, a.axis, 1, c.noise_variance
    FROM chosen AS c
    JOIN (SELECT DISTINCT bins.grid, bins.level_of AS axis FROM bins) AS a ON a.grid = c.grid
    ANTI JOIN {{ table('dph_covariance') }} AS v
        ON v.release = c.release AND v.period = c.period AND v.revision = c.revision
    WHERE c.noise_scale IS NOT NULL
),
weighted_nodes AS (
    SELECT w.name, w.grid, w.axis{{ ', w.first' if rows_by is defined }}, l.width, w.position // l.width AS node, 1 AS sign, {{ exact_sum('w.weight') }} AS weight
    FROM weights AS w
    JOIN (SELECT DISTINCT n.grid, n.axis, n.width FROM noise_levels AS n) AS l ON l.grid = w.grid AND l.axis = w.axis
    WHERE l.width > 0
    GROUP BY w.name, w.grid, w.axis{{ ', w.first' if rows_by is defined }}, l.width, w.position // l.width
    UNION ALL
    -- Along a weighted line: every position by itself, and what the other nodes take off.
    SELECT
        w.name, w.grid, w.axis{{ ', w.first' if rows_by is defined }}, l.width, CASE WHEN v.node < 0 THEN -1 - v.position ELSE v.node END AS node,
        CASE WHEN v.node < 0 THEN 1 ELSE -1 END AS sign, fsum(w.weight * v.weight ORDER BY v.position) AS weight
    FROM weights AS w
    JOIN (SELECT DISTINCT n.grid, n.axis, n.width FROM noise_levels AS n) AS l ON l.grid = w.grid AND l.axis = w.axis
    JOIN {{ table('dph_lines') }} AS v
        ON v.width = l.width AND v.position = w.position
    GROUP BY ALL
),
node_products AS (
    SELECT one.name AS first_name, two.name AS second_name, one.grid, one.axis, one.width{{ ', one.first' if rows_by is defined }},
        {{ exact_sum('one.sign * one.weight * two.weight') }} AS product
    FROM weighted_nodes AS one JOIN weighted_nodes AS two
        ON two.grid = one.grid AND two.axis = one.axis AND two.width = one.width AND two.node = one.node{{ ' AND two.first = one.first' if rows_by is defined }}
    GROUP BY one.name, two.name, one.grid, one.axis, one.width{{ ', one.first' if rows_by is defined }}
),
covariances AS (
    SELECT l.first_name, l.second_name, l.period, l.revision, {{ 'l.cell, ' if rows_by is defined }}{{ exact_sum('l.coefficient * l.product') }} AS covariance
    FROM (
        SELECT
            pairs.first_name, pairs.second_name, n.period, n.revision, n.level, {{ 'r.cell, ' if rows_by is defined }}any_value(n.coefficient) AS coefficient,
            product(coalesce(p.product, 0) ORDER BY n.axis) AS product
        FROM noise_levels AS n
        {% if rows_by is defined %}JOIN row_axes AS r ON r.period = n.period AND r.revision = n.revision AND r.axis = n.axis
        {% endif %}        JOIN (
            SELECT DISTINCT one.grid, one.name AS first_name, two.name AS second_name
            FROM weights AS one JOIN (SELECT DISTINCT w.grid, w.name FROM weights AS w) AS two ON two.grid = one.grid
        ) AS pairs ON pairs.grid = n.grid
        LEFT JOIN node_products AS p
            ON p.grid = n.grid AND p.axis = n.axis AND p.width = n.width
                AND p.first_name = pairs.first_name AND p.second_name = pairs.second_name{{ ' AND p.first = r.first' if rows_by is defined }}
        GROUP BY pairs.first_name, pairs.second_name, n.period, n.revision, n.level{{ ', r.cell' if rows_by is defined }}
    ) AS l
    GROUP BY l.first_name, l.second_name, l.period, l.revision{{ ', l.cell' if rows_by is defined }}
)
