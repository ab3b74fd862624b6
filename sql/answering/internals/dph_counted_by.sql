-- What dph_marginal answers, and what macros around it read: one row for each combination of values of some axes or levels, whose
-- columns these are, for each publication. Other columns begin with an underscore: `_answer` is a struct of the columns of an answer;
-- `_variance` and `_law` are those of the noise, `_cut` is what the bound cut in each row.
-- In: the name of the macro that asks, for its messages; `cut_told`, 'yes' if `_cut` is read; rows_by, a list of axes or levels; the
-- other arguments of dph_marginal.
{% set asked_by = 'asked_by' -%}
{% set axes = 'rows_by' -%}
{% set by = axes -%}
{% set columns = 't.*' -%}
{% set id = '_first' -%}
{% set has_limits = true -%}
{% set apart = 'SELECT DISTINCT w.grid, w.level_of AS axis FROM wanted_axes AS w WHERE w.is_asked' -%}
CREATE OR REPLACE MACRO {{ internals }}dph_counted_by(
    release_name, asked_by, cut_told, rows_by, box, period, revision
) AS TABLE
{% include 'pieces/opening.sql' %},
{% include 'pieces/bins.sql' %},
{% include 'pieces/boxes.sql' %},
wanted_axes AS (
    SELECT a.*, coalesce(list_contains(TRY_CAST({{ axes }} AS VARCHAR[]), a.axis), false) AS is_asked
    FROM grid_axes AS a
),
-- For an axis of which only levels are selected: the group of each position, by the first selected position of the group. Along
-- weighted lines, where the noise of positions differs, every selected axis is such an axis.
dph_weighted AS (
    SELECT DISTINCT chosen.grid
    FROM {{ table('dph_covariance') }} AS v
    JOIN chosen ON chosen.release = v.release AND chosen.period = v.period AND chosen.revision = v.revision
    WHERE v.width < 0
),
rolled AS (
    SELECT
        g.grid, g.axis, g.stride, g.size, g.position,
        min(g.position) OVER (PARTITION BY g.grid, g.axis, g.categories) AS first
    FROM (
        SELECT
            b.grid, b.level_of AS axis, b.stride, b.size, b.position,
            list(
                CASE WHEN b.axis = b.level_of THEN b.position || '' ELSE coalesce('=' || b.category, 'other') END ORDER BY b.axis
            ) AS categories
        FROM bins AS b
        JOIN wanted_axes AS w ON w.grid = b.grid AND w.axis = b.axis AND w.is_asked
        LEFT JOIN wanted_axes AS itself ON itself.grid = b.grid AND itself.axis = b.level_of AND itself.is_asked
        LEFT JOIN dph_weighted AS v ON v.grid = b.grid
        WHERE itself.grid IS NULL OR v.grid IS NOT NULL
        GROUP BY b.grid, b.level_of, b.stride, b.size, b.position
    ) AS g
    ANTI JOIN positions
        ON positions.grid = g.grid AND positions.axis = g.axis AND positions.position = g.position
            AND NOT positions.is_wanted
),
rolled_axes AS (
    SELECT DISTINCT rolled.grid, rolled.axis, rolled.stride, rolled.size FROM rolled
),
{% include 'pieces/nested.sql' %},
{% include 'pieces/atoms.sql' %},
rolled_squares AS (
    SELECT nodes.grid, nodes.axis, nodes.width, nodes.first, sum(CAST(nodes.cells AS DOUBLE) ** 2) AS squares
    FROM (
        SELECT w.grid, w.axis, w.width, rolled.first, rolled.position // w.width AS node, count(*) AS cells
        FROM widths AS w JOIN rolled ON rolled.grid = w.grid AND rolled.axis = w.axis
        WHERE w.width > 0
        GROUP BY w.grid, w.axis, w.width, rolled.first, node
    ) AS nodes
    GROUP BY nodes.grid, nodes.axis, nodes.width, nodes.first
    UNION ALL
    SELECT nodes.grid, nodes.axis, nodes.width, nodes.first, fsum(nodes.squares ORDER BY nodes.node) AS squares
    FROM (
        SELECT
            w.grid, w.axis, w.width, rolled.first, l.node,
            CASE
                WHEN l.node < 0 THEN fsum(l.weight ** 2 ORDER BY l.position)
                ELSE -(fsum(l.weight ORDER BY l.position) ** 2)
            END AS squares
        FROM widths AS w JOIN rolled ON rolled.grid = w.grid AND rolled.axis = w.axis
        JOIN lines AS l ON l.width = w.width AND l.position = rolled.position
        GROUP BY w.grid, w.axis, w.width, rolled.first, l.node
    ) AS nodes
    GROUP BY nodes.grid, nodes.axis, nodes.width, nodes.first
),
inside AS (
    SELECT t.* FROM conditions AS c JOIN dph_cells AS t ON {{ inside() }}
),
-- No axis can have the name of a column that begins with an underscore.
grouped AS MATERIALIZED (
    SELECT
        COLUMNS(
            lambda c: c IN ('period', 'revision')
                OR list_contains(TRY_CAST({{ axes }} AS VARCHAR[]), regexp_replace(c, '_(lower|upper|label)$', ''))
                OR list_contains(TRY_CAST({{ axes }} AS VARCHAR[]), c)
        ),
        min(cell_number) AS _first, count(*) AS _cells, {{ exact_sum('estimate') }} AS _estimate, {{ exact_sum('unbiased_estimate') }} AS _unbiased,
        histogram(group_id) FILTER (unbiased_estimate IS NULL) AS _groups,
        histogram(_known_group) FILTER (_known_group IS NOT NULL) AS _known
    FROM inside
    GROUP BY ALL
),
-- For linear estimates: the variance of each row, if levels are summed.
row_variances AS (
    SELECT v.period, v._first, {{ exact_sum('v.coefficient * v.squares') }} AS linear_variance
    FROM (
        SELECT
            g.period, g._first, nested.level,
            any_value(nested.coefficient) AS coefficient,
            any_value(nested.squares) * product(rolled_squares.squares ORDER BY rolled_squares.axis) AS squares
        FROM grouped AS g
        JOIN nested ON nested.period = g.period
        JOIN rolled_axes AS a ON a.grid = nested.grid
        JOIN levels ON levels.period = g.period AND levels.level = nested.level AND levels.axis = a.axis
        JOIN rolled_squares
            ON rolled_squares.grid = a.grid AND rolled_squares.axis = a.axis AND rolled_squares.width = levels.width
                AND rolled_squares.first = (g._first // a.stride) % a.size
        GROUP BY g.period, g._first, nested.level
    ) AS v
    GROUP BY v.period, v._first
),
variances AS (
    SELECT nested.period, {{ exact_sum('nested.coefficient * nested.squares') }} AS linear_variance
    FROM nested
    GROUP BY nested.period
),
-- For estimates from reports: the variance of each row, which is one cell or the box.
report_variances AS (
    SELECT
        l.period, l._first, {{ report_variance('l', 'l.atoms', 'l.unbiased') }} AS linear_variance, abs(l.gamma + l.delta * l.atoms) AS slope
    FROM (
        SELECT
            g.period, g._first, g._unbiased AS unbiased, c.alpha, c.beta, c.gamma, c.delta, c.step,
            CASE WHEN g._cells = 1 THEN bins.atoms ELSE a.atoms END AS atoms
        FROM grouped AS g
        JOIN chosen AS c ON c.period = g.period
        JOIN bins ON bins.grid = c.grid AND bins.position = g._first AND bins.atoms IS NOT NULL
        JOIN atoms AS a ON a.period = g.period
    ) AS l
),
-- The half width is computed once for each kind of row; there are few kinds.
kinds AS (
    SELECT summed.*, {{ reach() }} AS reach
    FROM (
        SELECT DISTINCT
            c.period, c.noise_scale, c.noise_variance, c.has_bars, c.step, g._cells AS cells,
            coalesce(r.linear_variance, v.linear_variance, l.linear_variance) AS linear_variance, l.slope
        FROM grouped AS g
        JOIN chosen AS c ON c.period = g.period
        LEFT JOIN row_variances AS r ON r.period = g.period AND r._first = g._first
        LEFT JOIN variances AS v ON v.period = g.period
        LEFT JOIN report_variances AS l ON l.period = g.period AND l._first = g._first
    ) AS summed
    {{ widths(release) }}
),
sets AS (
    SELECT g._first AS id, g.period, g.revision, g._cells AS cells, g._groups AS groups FROM grouped AS g
),
{% include 'pieces/group_sums.sql' %},
{% set key, counted, known_groups = ['period', 'revision', '_first'], 'grouped', '_known' -%}
{% include 'pieces/known.sql' %},
-- A count that is known has no noise.
reaching AS (
    SELECT
        g.period, g.revision, g._first, coalesce(k.known_least = k.known_most, false) AS is_known, k.known_least, k.known_most,
        CASE WHEN is_known THEN k.known_most ELSE g._estimate END AS estimate,
        CASE WHEN is_known THEN k.known_most ELSE g._unbiased END AS unbiased,
        kinds.* EXCLUDE (period) REPLACE (
            CASE WHEN is_known THEN 0 ELSE kinds.linear_variance END AS linear_variance,
            CASE WHEN is_known THEN {'one': 0.0, 'two': 0.0} ELSE kinds.reach END AS reach
        )
    FROM grouped AS g
    LEFT JOIN known_limits AS k ON k.period = g.period AND k.revision = g.revision AND k._first = g._first
    LEFT JOIN row_variances AS r ON r.period = g.period AND r._first = g._first
    LEFT JOIN variances AS v ON v.period = g.period
    LEFT JOIN report_variances AS l ON l.period = g.period AND l._first = g._first
    JOIN kinds
        ON kinds.period = g.period AND kinds.cells = g._cells AND kinds.slope IS NOT DISTINCT FROM l.slope
            AND kinds.linear_variance
                IS NOT DISTINCT FROM coalesce(r.linear_variance, v.linear_variance, l.linear_variance)
),
-- As a subquery, DuckDB would compute the half widths again for each column that reads them.
barred AS MATERIALIZED (
    {% include 'pieces/ends.sql' %}
),
{% include 'pieces/cut_of_rows.sql' %}
first_problems AS (
    {% include 'pieces/axis_problems.sql' %}
)
SELECT
    grouped.* EXCLUDE (_first, _cells, _estimate, _unbiased, _groups, _known),
    barred._first, barred.cells AS _cells,
    CASE WHEN NOT barred.is_grouped THEN coalesce(barred.linear_variance, barred.cells * barred.noise_variance) END
        AS _variance,
    barred.linear_variance IS NOT NULL AS _is_linear,
    CASE WHEN barred.is_grouped THEN barred.unbiased ELSE barred.own_unbiased END AS _unbiased,
    {'noise_scale': barred.noise_scale, 'noise_variance': barred.noise_variance} AS _law,
    (SELECT a FROM (SELECT {% include 'pieces/answer.sql' %}) AS a) AS _answer,
    CASE WHEN cut_of_rows.period IS NOT NULL THEN cut_of_rows END AS _cut,
    chosen.period_end AS _period_end
FROM ({% include 'pieces/found.sql' %}) AS found LEFT JOIN (
    grouped
    JOIN barred ON barred.period = grouped.period AND barred._first = grouped._first
    JOIN chosen ON chosen.period = grouped.period AND chosen.revision = grouped.revision
    LEFT JOIN cut_of_rows ON cut_of_rows.period = grouped.period AND cut_of_rows._first = grouped._first
) ON true
WHERE {% include 'pieces/no_problem.sql' %}
