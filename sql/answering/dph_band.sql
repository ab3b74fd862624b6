-- A simultaneous confidence band: all intervals of the band hold together with the probability `level`. One row for each cell
-- of the box, in declared order, for each period (its latest revision). Exact for independent cells; by a bound on the
-- tail of the noise for linear estimates, and by Bernstein's inequality for reports, where it is somewhat wide.
-- Of a cell whose count is a public figure, the band is that figure; figures around a cell cut its band off, no farther than at its number.
-- In: the release's table; the level; a box and a period as in dph_box.
{% set answers = 'asked' -%}
{% set columns = 't.*' -%}
{% set also = 'r.tail_rate, r.tail_factor, ' ~ decay('r.noise_scale') ~ ' AS decay' -%}
{% set arguments = ['box', 'period', 'revision'] -%}
{% set boxes = {'box': argument('box')} -%}
CREATE OR REPLACE MACRO {{ schema }}dph_band(release_name, level := 0.95, box := '{}', period := NULL, revision := NULL) AS TABLE
{% include 'pieces/opening.sql' %},
{% include 'pieces/bins.sql' %},
{% include 'pieces/boxes.sql' %},
inside AS (
    SELECT t.* FROM conditions AS c JOIN dph_cells AS t ON {{ inside() }}
),
-- Along a weighted line the noise of positions differs; the largest one is taken for all.
line_variances AS (
    SELECT p.width, max(p.variance) AS largest
    FROM (
        SELECT v.width, v.position, fsum(CASE WHEN v.node < 0 THEN 1 ELSE -1 END * v.weight ** 2 ORDER BY v.node) AS variance
        FROM {{ table('dph_lines') }} AS v
        GROUP BY v.width, v.position
    ) AS p
    GROUP BY p.width
),
cell_variances AS (
    SELECT nodes.period, {{ exact_sum('nodes.coefficient') }} AS linear_variance
    FROM (
        SELECT chosen.period, v.level, any_value(v.coefficient) * product(coalesce(l.largest, 1) ORDER BY v.axis) AS coefficient
        FROM {{ table('dph_covariance') }} AS v
        JOIN chosen ON chosen.release = v.release AND chosen.period = v.period AND chosen.revision = v.revision
        LEFT JOIN line_variances AS l ON l.width = v.width
        GROUP BY chosen.period, v.level
    ) AS nodes
    GROUP BY nodes.period
),
-- The probability that the interval of one cell misses; all of them together miss with less than 1 - level.
sizes AS (
    SELECT
        chosen.* EXCLUDE (cells), c.linear_variance, counted.cells,
        coalesce(c.linear_variance, chosen.noise_variance) AS variance,
        CASE
            WHEN c.linear_variance IS NOT NULL OR chosen.step IS NOT NULL THEN (1 - TRY_CAST(level AS DOUBLE)) / counted.cells
            -- 1 - level ** (1 / cells), written so that small values keep their digits.
            WHEN -ln(TRY_CAST(level AS DOUBLE)) / counted.cells < 1e-5
                THEN -ln(TRY_CAST(level AS DOUBLE)) / counted.cells * (1 + ln(TRY_CAST(level AS DOUBLE)) / counted.cells / 2)
            ELSE 1 - exp(ln(TRY_CAST(level AS DOUBLE)) / counted.cells)
        END AS missed
    FROM chosen
    JOIN (SELECT inside.period, count(*) AS cells FROM inside GROUP BY inside.period) AS counted
        ON counted.period = chosen.period
    LEFT JOIN cell_variances AS c ON c.period = chosen.period
    WHERE TRY_CAST(level AS DOUBLE) > 0 AND TRY_CAST(level AS DOUBLE) < 1
),
reaching AS (
    SELECT
        v.*,
        CASE
            WHEN v.noise_variance IS NULL THEN NULL
            WHEN v.linear_variance IS NULL
                THEN {{ draw_reach('v') }}
            -- Version 0.2 published no tail; `least` leaves null out.
            ELSE least({{ bound('v') }}, ln(greatest(1, v.tail_factor / v.missed)) / v.tail_rate)
        END AS half_width
    FROM sizes AS v
),
-- For estimates from reports, each cell has its own half width.
report_reaching AS (
    SELECT v.period, v.cell_number, v.variance, {{ report_reach('v', 'v.factor', 'variance') }} AS half_width
    FROM (
        SELECT
            r.period, i.cell_number, r.step, sqrt(2 * ln(2 / r.missed)) AS factor, {{ report_variance('r', 'bins.atoms', 'i.unbiased_estimate') }} AS variance,
            abs(r.gamma + r.delta * bins.atoms) AS slope
        FROM inside AS i
        JOIN reaching AS r ON r.period = i.period
        JOIN bins ON bins.grid = r.grid AND bins.position = i.cell_number
        WHERE r.step IS NOT NULL
    ) AS v
),
answered AS (
    SELECT
        inside.period, inside.cell_number, r.cells,
        coalesce(r.half_width, own.half_width) AS half_width,
        coalesce(r.variance, own.variance) AS variance,
        CASE WHEN r.linear_variance IS NULL AND own.variance IS NULL THEN 'unbiased' ELSE 'linear' END AS basis,
        CAST(known.figure AS DOUBLE) AS known_most, coalesce(known.cells = 1 OR known.figure = 0, false) AS is_known
    FROM inside
    JOIN reaching AS r ON r.period = inside.period
    LEFT JOIN report_reaching AS own ON own.period = inside.period AND own.cell_number = inside.cell_number
    LEFT JOIN {{ table('dph_known') }} AS known
        ON known.release = r.release AND known.period = inside.period AND known.revision = inside.revision
            AND known.known_group = inside._known_group
),
first_problems AS (
    SELECT 'the level lies between 0 and 1, as 0.95, not ' || coalesce(CAST(level AS VARCHAR), 'null') AS problem
    WHERE NOT coalesce(TRY_CAST(level AS DOUBLE) > 0 AND TRY_CAST(level AS DOUBLE) < 1, false)
)
SELECT
    inside.* EXCLUDE ({{ value_columns }}),
    CASE WHEN r.is_known THEN r.known_most ELSE inside.estimate END AS estimate,
    CASE WHEN r.is_known THEN r.known_most ELSE inside.unbiased_estimate END AS unbiased,
    CASE WHEN r.is_known THEN 0 ELSE sqrt(r.variance) END AS noise_error,
    CASE
        WHEN r.is_known THEN r.known_most
        ELSE {{ limited_lower('(inside.unbiased_estimate - r.half_width)', 'inside.unbiased_estimate', '0', 'r.known_most') }}
    END AS ci_lower,
    CASE
        WHEN r.is_known THEN r.known_most
        ELSE {{ limited_upper('(inside.unbiased_estimate + r.half_width)', 'inside.unbiased_estimate', '0', 'r.known_most') }}
    END AS ci_upper,
    CASE
        WHEN r.is_known THEN 'known'
        WHEN r.half_width IS NULL THEN 'noise_only'
        ELSE r.basis
    END AS basis,
    r.cells,
    CASE
        WHEN r.is_known THEN {{ notes.KNOWN | literal }}
        WHEN r.half_width IS NULL THEN {{ notes.NO_INTERVAL | literal }}
        WHEN abs(inside.estimate - inside.unbiased_estimate) > r.half_width + 1e-6 THEN {{ notes.SMOOTHED | literal }}
        WHEN inside.estimate < 0 THEN {{ notes.BELOW | literal }}
        WHEN inside.estimate > r.known_most THEN {{ notes.BEYOND | literal }}
    END AS note,
    {{ days('inside.period', end_of('inside')) }}
FROM ({% include 'pieces/found.sql' %}) AS found LEFT JOIN (
    inside JOIN answered AS r ON r.period = inside.period AND r.cell_number = inside.cell_number
) ON true
WHERE {% include 'pieces/no_problem.sql' %}
ORDER BY inside.period, inside.cell_number
