-- The one axis that two boxes have conditions on, and the rows cut in both along it: rows of `cut_along`. Conditions on an axis that
-- cover all of its positions are none. Needs `bought`.
-- In: first and second, the names of the boxes.
one_axis AS (
    SELECT
        r.period, r.revision, r.cell, any_value(r.grid) AS grid,
        coalesce(min(s.axis) FILTER (s.wanted < s.size), min(s.axis)) AS axis,
        arg_min(r.first, r.axis) FILTER (s.wanted < s.size) AS first
    FROM row_axes AS r JOIN (
        SELECT allowed.grid, allowed.axis, -1 AS first, allowed.wanted, allowed.size FROM allowed
        UNION ALL
        SELECT b.grid, b.axis, b.first, count(*) FILTER (coalesce(p.is_wanted, true)), any_value(b.size)
        FROM by_positions AS b CROSS JOIN names
        LEFT JOIN positions AS p
            ON p.name = names.name AND p.grid = b.grid AND p.axis = b.axis AND p.position = b.position
        GROUP BY b.grid, b.axis, b.first, names.name
    ) AS s ON s.grid = r.grid AND s.axis = r.axis AND s.first = r.first
    GROUP BY r.period, r.revision, r.cell
    HAVING count(DISTINCT s.axis) FILTER (s.wanted < s.size) <= 1
),
cut_along AS (
    SELECT
        k.period, k.revision, k.cell, any_value(k.noise_variance) AS cut_variance,
        sum(k.estimate) FILTER (k.in_first) AS first_cut, sum(k.estimate) FILTER (k.in_second) AS second_cut,
        count(*) FILTER (k.in_first) AS first_draws, count(*) FILTER (k.in_second) AS second_draws,
        count(*) FILTER (k.in_first AND k.in_second) AS both_draws
    FROM (
        SELECT
            b.period, b.revision, o.cell, b.noise_variance, b.estimate,
            coalesce(g.first = o.first, true) AS in_row, in_row AND coalesce(one.is_wanted, true) AS in_first,
            in_row AND coalesce(two.is_wanted, true) AS in_second
        FROM bought AS b
        JOIN chosen AS c ON c.period = b.period AND c.revision = b.revision
        JOIN one_axis AS o ON o.period = c.period AND o.revision = c.revision AND o.axis = b.axis
        LEFT JOIN by_positions AS g ON g.grid = o.grid AND g.axis = o.axis AND g.position = b.position
        LEFT JOIN positions AS one
            ON one.name = '{{ cut_in.first }}' AND one.grid = o.grid AND one.axis = o.axis AND one.position = b.position
        LEFT JOIN positions AS two
            ON two.name = '{{ cut_in.second }}' AND two.grid = o.grid AND two.axis = o.axis AND two.position = b.position
        WHERE b.statistic = 'cut'
    ) AS k
    GROUP BY k.period, k.revision, k.cell
),
