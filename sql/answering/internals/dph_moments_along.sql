-- What dph_mean and dph_sum ask, one row for each publication and each value of the axes that it is asked by, whose columns these
-- are; the numbers are the struct `_moments`: sums over the bins of an axis, weighted by their lower ends, their upper ends and their middles. The ends
-- of bins of whole numbers are their first and their last one. An end that is open is closed by `low` or `high`, within which all
-- values lie. For estimates from reports, variances and covariances are those of the middles,
-- at the estimated counts. `by_chance` has the variances and covariances of chance, if the question asks for it.
-- In: the name of the macro that asks, for its messages; the arguments of dph_mean, and axes or levels that rows are asked by.
{% set asked_by = 'asked_by' -%}
{% set conditions = 'conditions_of_boxes' -%}
{% set also = 'r.half_part' -%}
{% set rows_by = 'rows_by' -%}
{% set columns = 't.*' -%}
{% set line = 'line' -%}
{# Asked value by value, each would have a condition: the same table of a family answers. -#}
{% set along = "list_concat([coalesce(CAST(axis AS VARCHAR), '')], coalesce(TRY_CAST(rows_by AS VARCHAR[]), []))" -%}
{% set weights -%}
    SELECT v.name, i.grid, i.axis, i.position, i.first, CASE WHEN i.axis = given.axis THEN v.weight ELSE 1 END AS weight
    FROM inside_positions AS i JOIN given ON true
    LEFT JOIN closed AS k ON k.grid = i.grid AND k.axis = i.axis AND k.position = i.position, LATERAL (
        SELECT
            unnest(['rows', 'low', 'high', 'middle']) AS name,
            unnest([1, k.above_least, k.below_most, (k.low_end + k.high_end) / 2]) AS weight
    ) AS v
{%- endset -%}
CREATE OR REPLACE MACRO {{ internals }}dph_moments_along(
    release_name, asked_by, axis, low, high, box, period, revision, with_chance, rows_by
) AS TABLE
{% include 'pieces/opening.sql' %},
{% include 'pieces/bins.sql' %},
given AS (
    SELECT
        CAST(axis AS VARCHAR) AS axis, CAST(low AS VARCHAR) AS low, CAST(high AS VARCHAR) AS high,
        with_chance AS with_chance
),
{% include 'pieces/boxes_along.sql' %},
{% include 'pieces/boxes.sql' %},
-- The selected bins with two ends each; `least` and `most` are the ends of all of them together.
closed AS (
    SELECT
        ends.*, ends.low_end - min(ends.low_end) OVER one_grid AS above_least,
        max(ends.high_end) OVER one_grid - ends.high_end AS below_most,
        min(ends.low_end) OVER one_grid AS least, max(ends.high_end) OVER one_grid AS most,
        max(ends.low_end) OVER one_grid - least AS low_span, most - min(ends.high_end) OVER one_grid AS high_span,
        (ends.low_end + ends.high_end) / 2 AS middle
    FROM (
        SELECT
            b.grid, b.axis, b.stride, b.size, b.position, b.calendar, b.amount, b.bin_lower, b.bin_upper, b.first_value, b.last_value, b.atoms,
            CASE
                WHEN isfinite(b.first_value) THEN b.first_value
                WHEN b.calendar THEN date_diff('day', DATE '1970-01-01', TRY_CAST(given.low AS DATE))
                ELSE TRY_CAST(given.low AS DOUBLE)
            END AS low_end,
            CASE
                WHEN isfinite(b.last_value) THEN b.last_value
                WHEN b.calendar THEN date_diff('day', DATE '1970-01-01', TRY_CAST(given.high AS DATE))
                ELSE TRY_CAST(given.high AS DOUBLE)
            END AS high_end
        FROM bins AS b JOIN given ON given.axis = b.axis
        JOIN positions AS p ON p.grid = b.grid AND p.axis = b.axis AND p.position = b.position AND p.is_wanted
        WHERE b.binned
    ) AS ends
    WINDOW one_grid AS (PARTITION BY ends.grid)
),
line AS (SELECT DISTINCT closed.grid, closed.stride, closed.size FROM closed),
{% include 'pieces/rows_by.sql' %},
{% include 'pieces/covariances.sql' %},
moments AS (
    SELECT
        s.*, c.half_part, c.period_end, c.has_bars, c.step, c.gamma, c.delta, c.noise_scale, c.noise_variance,
        EXISTS (FROM noise_levels AS n WHERE n.period = s.period AND n.revision = s.revision AND n.level > 0) AS is_nested,
        v.low_low, v.low_rows, v.high_high, v.high_rows,
        CASE
            WHEN c.step IS NULL THEN v.rows_rows
            WHEN s.has_middles
                THEN c.alpha * s.atoms - c.beta * s.atoms ** 2 + (c.gamma + c.delta * s.atoms) * s.rows
        END AS rows_rows,
        CASE
            WHEN c.step IS NULL THEN v.middle_rows
            WHEN s.has_middles
                THEN c.alpha * s.middle_atoms - c.beta * s.middle_atoms * s.atoms + c.gamma * s.middles
                    + c.delta / 2 * (s.middle_atoms * s.rows + s.atoms * s.middles)
        END AS middle_rows,
        CASE
            WHEN c.step IS NULL THEN v.middle_middle
            WHEN s.has_middles
                THEN c.alpha * s.square_atoms - c.beta * s.middle_atoms ** 2 + c.gamma * s.squares
                    + c.delta * s.middle_atoms * s.middles
        END AS middle_middle
    FROM (
        SELECT
            a.period, a.revision, a.cell, any_value(k.least) AS least, any_value(k.most) AS most,
            any_value(k.low_span) AS low_span, any_value(k.high_span) AS high_span,
            CAST(sum(a.cells) AS BIGINT) AS cells, {{ exact_sum('a.estimate') }} AS estimated_rows, {{ exact_sum('a.unbiased') }} AS rows,
            {{ exact_sum('a.estimate * (k.low_end + k.high_end) / 2') }} AS estimated_middles,
            {{ exact_sum('a.unbiased * (k.low_end + k.high_end) / 2') }} AS middles,
            {{ exact_sum('a.unbiased * k.above_least') }} AS lows,
            {{ exact_sum('a.unbiased * k.below_most') }} AS highs,
            {{ exact_sum('a.unbiased * k.middle ** 2') }} AS squares,
            fsum(k.atoms ORDER BY a.position) AS atoms, fsum(k.atoms * k.middle ORDER BY a.position) AS middle_atoms,
            fsum(k.atoms * k.middle ** 2 ORDER BY a.position) AS square_atoms,
            bool_and(isfinite(k.bin_lower) AND isfinite(k.bin_upper)) AS has_middles,
            min(k.middle) AS least_middle, max(k.middle) AS most_middle,
            max(k.high_end - k.low_end) / 2 AS half_bin,
            fsum(greatest(0, coalesce(a.unbiased, a.estimate)) * (k.high_end - k.low_end) / 2 ORDER BY a.position) AS moved_sum,
            {
                'rows': {{ chance_of('1') }},
                'low_rows': {{ chance_of('k.above_least') }},
                'low_low': {{ chance_of('k.above_least ** 2') }},
                'high_rows': {{ chance_of('k.below_most') }},
                'high_high': {{ chance_of('k.below_most ** 2') }},
                'middle_rows': {{ chance_of('k.middle') }}, 'middle_middle': {{ chance_of('k.middle ** 2') }},
                'lower_ends': {{ chance_of('k.low_end ** 2') }}, 'upper_ends': {{ chance_of('k.high_end ** 2') }}
            } AS by_chance
        FROM keyed AS a
        JOIN chosen ON chosen.period = a.period AND chosen.revision = a.revision
        JOIN closed AS k ON k.grid = chosen.grid AND k.position = a.position, given
        GROUP BY a.period, a.revision, a.cell, given.with_chance
    ) AS s
    JOIN chosen AS c ON c.period = s.period AND c.revision = s.revision
    LEFT JOIN (
        SELECT
            v.period, v.revision, v.cell,
            any_value(v.covariance) FILTER (v.first_name = 'rows' AND v.second_name = 'rows') AS rows_rows,
            any_value(v.covariance) FILTER (v.first_name = 'low' AND v.second_name = 'low') AS low_low,
            any_value(v.covariance) FILTER (v.first_name = 'low' AND v.second_name = 'rows') AS low_rows,
            any_value(v.covariance) FILTER (v.first_name = 'high' AND v.second_name = 'high') AS high_high,
            any_value(v.covariance) FILTER (v.first_name = 'high' AND v.second_name = 'rows') AS high_rows,
            any_value(v.covariance) FILTER (v.first_name = 'middle' AND v.second_name = 'middle') AS middle_middle,
            any_value(v.covariance) FILTER (v.first_name = 'middle' AND v.second_name = 'rows') AS middle_rows
        FROM covariances AS v
        GROUP BY v.period, v.revision, v.cell
    ) AS v ON v.period = s.period AND v.revision = s.revision AND v.cell = s.cell
),
first_problems AS (
    FROM by_problems
    UNION ALL
    SELECT 'there is no binned axis ' || coalesce(given.axis, 'null') || ' in period ' || chosen.period || '; those are '
        || coalesce(
            (
                SELECT string_agg(DISTINCT b.axis, ', ' ORDER BY b.axis)
                FROM bins AS b WHERE b.grid = chosen.grid AND b.binned
            ),
            'none'
        ) AS problem
    FROM chosen, given
    WHERE NOT EXISTS (FROM bins WHERE bins.grid = chosen.grid AND bins.axis = given.axis AND bins.binned)
    UNION ALL
    SELECT 'axis ' || k.axis || ' has an open bin; say where its values end, for example '
        || concat_ws(
            ', ',
            'low := ' || CASE
                WHEN k.calendar THEN printf('''%s''', CAST(DATE '1970-01-01' + CAST(k.first_edge AS INTEGER) - 365 AS VARCHAR))
                ELSE printf('%g', k.first_edge - 10)
            END,
            'high := ' || CASE
                WHEN k.calendar THEN printf('''%s''', CAST(DATE '1970-01-01' + CAST(k.last_edge AS INTEGER) + 365 AS VARCHAR))
                ELSE printf('%g', k.last_edge + 10)
            END
        ) || ', or ask a box without open bins'
    FROM (
        SELECT
            c.axis, any_value(c.calendar) AS calendar,
            max(c.bin_upper) FILTER (NOT coalesce(isfinite(c.low_end), false)) AS first_edge,
            max(c.bin_lower) FILTER (NOT coalesce(isfinite(c.high_end), false)) AS last_edge
        FROM closed AS c
        GROUP BY c.grid, c.axis
    ) AS k
    WHERE k.first_edge IS NOT NULL OR k.last_edge IS NOT NULL
    UNION ALL
    SELECT 'axis ' || k.axis || ': ' || CASE
        WHEN w.is_whole AND isfinite(k.bin_upper) THEN printf('low must be at most %g, the last', k.last_value)
        WHEN w.is_whole THEN printf('high must be at least %g, the first', k.first_value)
        WHEN isfinite(k.bin_upper) THEN 'low must lie below ' || CASE
            WHEN k.calendar THEN CAST(DATE '1970-01-01' + CAST(k.bin_upper AS INTEGER) AS VARCHAR)
            ELSE printf('%g', k.bin_upper)
        END
        ELSE 'high must lie above ' || CASE
            WHEN k.calendar THEN CAST(DATE '1970-01-01' + CAST(k.bin_lower AS INTEGER) AS VARCHAR)
            ELSE printf('%g', k.bin_lower)
        END
    END || CASE WHEN w.is_whole THEN ' number of the open bin' ELSE ', the last edge on that side' END
    FROM closed AS k
    JOIN (
        SELECT b.grid, b.axis, bool_or(b.first_value <> b.bin_lower OR b.last_value <> b.bin_upper) AS is_whole
        FROM bins AS b
        GROUP BY b.grid, b.axis
    ) AS w ON w.grid = k.grid AND w.axis = k.axis
    WHERE k.low_end > k.high_end OR (k.low_end = k.high_end AND NOT w.is_whole AND NOT k.amount)
    UNION ALL
    SELECT 'axis ' || k.axis || ' holds days, which have no sum; dph_mean takes it'
    FROM closed AS k
    WHERE k.calendar AND asked_by = 'dph_sum'
)
SELECT
    moments AS _moments,
    grouped.* EXCLUDE (period, revision, _name, _position, _first, _cells, _estimate, _unbiased, _known)
FROM ({% include 'pieces/found.sql' %}) AS found LEFT JOIN moments ON true
LEFT JOIN (
    SELECT k.period, k.revision, k.cell, min(k._first) AS first FROM keyed AS k GROUP BY k.period, k.revision, k.cell
) AS f ON f.period = moments.period AND f.revision = moments.revision AND f.cell = moments.cell
LEFT JOIN grouped
    ON grouped.period = moments.period AND grouped.revision = moments.revision AND grouped._first = f.first
WHERE {% include 'pieces/no_problem.sql' %}
