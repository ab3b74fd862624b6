-- The one axis that two boxes have conditions on, and the rows cut in both along it: rows of `cut_along`. Conditions on an axis that
-- cover all of its positions are none. Needs `bought`.
-- In: first and second, the names of the boxes.
one_axis AS (
    SELECT
        allowed.grid,
        coalesce(min(allowed.axis) FILTER (allowed.wanted < allowed.size), min(allowed.axis)) AS axis
    FROM allowed
    GROUP BY allowed.grid
    HAVING count(DISTINCT allowed.axis) FILTER (allowed.wanted < allowed.size) <= 1
),
cut_along AS (
    SELECT
        k.period, k.revision, any_value(k.noise_variance) AS cut_variance,
        sum(k.estimate) FILTER (k.in_first) AS first_cut, sum(k.estimate) FILTER (k.in_second) AS second_cut,
        count(*) FILTER (k.in_first) AS first_draws, count(*) FILTER (k.in_second) AS second_draws,
        count(*) FILTER (k.in_first AND k.in_second) AS both_draws
    FROM (
        SELECT
            b.period, b.revision, b.noise_variance, b.estimate,
            coalesce(one.is_wanted, true) AS in_first, coalesce(two.is_wanted, true) AS in_second
        FROM bought AS b
        JOIN chosen AS c ON c.period = b.period AND c.revision = b.revision
        JOIN one_axis AS o ON o.grid = c.grid AND o.axis = b.axis
        LEFT JOIN positions AS one
            ON one.name = '{{ cut_in.first }}' AND one.grid = o.grid AND one.axis = o.axis AND one.position = b.position
        LEFT JOIN positions AS two
            ON two.name = '{{ cut_in.second }}' AND two.grid = o.grid AND two.axis = o.axis AND two.position = b.position
        WHERE b.statistic = 'cut'
    ) AS k
    GROUP BY k.period, k.revision
),
