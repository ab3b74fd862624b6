-- Noisy sums that were drawn after the groups were found, for the sets of cells that are unions of whole groups.
-- In: sets (id, period, revision, cells, groups): `groups` has the number of the set's cells in each group, where there are no
-- noisy cells.
-- Given the groups, the noise of such a sum has its exact law. Where there are noisy cells, the groups were found on these, so
-- whether a set is a union of whole groups may depend on their noise; there, only the sum of all cells is answered by both.
noisy_sums AS (
    SELECT g.* EXCLUDE (release), c.cells AS all_cells, c.has_bars
    FROM {{ table('dph_groups') }} AS g
    JOIN chosen AS c ON c.release = g.release AND c.period = g.period AND c.revision = g.revision
),
whole_sums AS (
    SELECT s.id, s.period, s.revision, n.sum_number, any_value(n.parent) AS parent
    FROM (
        SELECT sets.id, sets.period, sets.revision, unnest(map_keys(sets.groups)) AS group_id,
            unnest(map_values(sets.groups)) AS cells
        FROM sets
    ) AS s
    JOIN noisy_sums AS n
        ON n.period = s.period AND n.revision = s.revision AND s.group_id BETWEEN n.first_group AND n.last_group
    GROUP BY s.id, s.period, s.revision, n.sum_number
    HAVING sum(s.cells) = any_value(n.cells)
),
group_sums AS (
    SELECT
        g.*, {'one': CAST(w.half_width AS DOUBLE), 'two': CAST(w.half_width_of_two AS DOUBLE)} AS reach
    FROM (
        SELECT
            u.id, u.period, u.revision, any_value(n.noise_scale) AS noise_scale,
            count(*) * any_value(n.noise_variance) AS variance, count(*) AS draws,
            sum(n.cells) AS cells, sum(n.noisy_sum) AS unbiased
        FROM (
            -- The fewest sums that make up each set.
            SELECT w.id, w.period, w.revision, w.sum_number
            FROM whole_sums AS w ANTI JOIN whole_sums AS larger
                ON larger.id = w.id AND larger.period = w.period AND larger.revision = w.revision
                    AND larger.sum_number = w.parent
            UNION ALL
            SELECT sets.id, n.period, n.revision, n.sum_number
            FROM noisy_sums AS n JOIN sets
                ON sets.period = n.period AND sets.revision = n.revision AND sets.cells = n.all_cells
            WHERE n.parent IS NULL AND n.has_bars
        ) AS u
        JOIN noisy_sums AS n ON n.period = u.period AND n.revision = u.revision AND n.sum_number = u.sum_number
        GROUP BY u.id, u.period, u.revision
    ) AS g
    ASOF LEFT JOIN {{ table('dph_half_widths') }} AS w ON w.noise_scale = g.noise_scale AND w.cells >= g.draws
)
