-- The bin of an axis that contains a quantile, with its 95 % interval: one row for each period (its latest revision), in order,
-- and for each q, if several are asked for at once.
-- The bin is the first one at whose upper edge a share q of the rows is reached. The interval comes from a band that holds at
-- all edges at once with 95 %, so all quantiles of one box hold together; it assumes nothing about the position of rows in
-- a bin. `estimate` assumes that the rows of the bin are spread evenly; it is null if the bin is open. Rows in `other` do not
-- count.
-- `capped` tells how many rows the bound cut, from the quality table; without one, that the bias by the bound is not known.
-- Numbers are in axis units, on a calendar axis days since 1970-01-01; `bin` and `ci_bins` are texts for readers. On an axis
-- declared `whole`, `bin_lower`, `bin_upper` and the ends of the interval are the first and last whole numbers of their bins.
-- In: the release's table; a binned axis; q between 0 and 1, or a list as [0.25, 0.5]; a box and a period as in dph_box.
{% set conditions = 'conditions_of_boxes' -%}
{% set along = "[coalesce(CAST(axis AS VARCHAR), '')]" -%}
{% set apart = 'SELECT spans.grid, spans.axis FROM spans' -%}
{% set arguments = ['box', 'period', 'revision'] -%}
{% set boxes = {'box': argument('box')} -%}
CREATE OR REPLACE MACRO {{ schema }}dph_quantile(release_name, axis, q := 0.5, box := '{}', period := NULL, revision := NULL) AS TABLE
{% include 'pieces/opening.sql' %},
{% include 'pieces/bins.sql' %},
given AS (
    SELECT CAST(axis AS VARCHAR) AS axis
),
asked_shares AS (
    SELECT DISTINCT unnest(coalesce(TRY_CAST(written.q AS DOUBLE[]), [TRY_CAST(written.q AS DOUBLE)])) AS q
    FROM (SELECT CAST(q AS VARCHAR) AS q) AS written
),
{% include 'pieces/boxes_along.sql' %},
{% include 'pieces/boxes.sql' %},
spans AS (
    SELECT allowed.grid, allowed.axis, allowed.stride, allowed.size, allowed.first, allowed.final
    FROM allowed JOIN given ON given.axis = allowed.axis
),
{% include 'pieces/nested.sql' %},
along AS (
    SELECT
        c.period, (t.cell_number // spans.stride) % spans.size AS position,
        count(*) AS cells, {{ exact_sum('t.estimate') }} AS estimate, {{ exact_sum('t.unbiased_estimate') }} AS unbiased
    FROM conditions AS c
    JOIN spans ON spans.grid = c.grid
    JOIN dph_cells AS t ON {{ inside() }}
    GROUP BY c.period, position
),
-- At the upper edge of each bin: the count below it, and the total. The quantile lies below if q * total is at most the count.
edges AS (
    SELECT
        a.period, a.position, a.q,
        sum(a.estimate) OVER below AS estimate_below, sum(a.estimate) OVER everything AS estimate,
        sum(a.unbiased) OVER below - a.q * sum(a.unbiased) OVER everything AS balance,
        CAST(sum(a.cells) OVER below AS BIGINT) AS cells_below,
        CAST(sum(a.cells) OVER everything AS BIGINT) AS cells,
        sum(a.atoms) OVER below AS atoms_below, sum(a.atoms) OVER everything - sum(a.atoms) OVER below AS atoms_above,
        sum(a.unbiased) OVER below AS unbiased_below,
        sum(a.unbiased) OVER everything - sum(a.unbiased) OVER below AS unbiased_above
    FROM (
        SELECT along.*, bins.atoms, asked_shares.q
        FROM asked_shares, along JOIN chosen ON chosen.period = along.period
        JOIN given ON true
        LEFT JOIN bins ON bins.grid = chosen.grid AND bins.axis = given.axis AND bins.position = along.position
    ) AS a
    WINDOW
        below AS (PARTITION BY a.period, a.q ORDER BY a.position ROWS UNBOUNDED PRECEDING),
        everything AS (PARTITION BY a.period, a.q)
),
-- Along a weighted line: the squares, as in `nested`, of the positions up to each one, above it, and of all.
line_squares AS (
    SELECT
        s.grid, s.width, s.position,
        fsum(CASE WHEN s.node < 0 THEN s.below ELSE -(s.below ** 2) END ORDER BY s.node) AS below,
        fsum(CASE WHEN s.node < 0 THEN s.everything - s.below ELSE -((s.everything - s.below) ** 2) END ORDER BY s.node) AS above,
        fsum(CASE WHEN s.node < 0 THEN s.everything ELSE -(s.everything ** 2) END ORDER BY s.node) AS everything
    FROM (
        SELECT
            spans.grid, l.width, l.node, l.position,
            sum(CASE WHEN l.node < 0 THEN l.weight ** 2 ELSE l.weight END) OVER below AS below,
            sum(CASE WHEN l.node < 0 THEN l.weight ** 2 ELSE l.weight END) OVER everything AS everything
        FROM spans
        JOIN (SELECT DISTINCT v.grid, v.axis, v.width FROM levels AS v) AS v ON v.grid = spans.grid AND v.axis = spans.axis
        JOIN lines AS l ON l.width = v.width AND l.position BETWEEN spans.first AND spans.final
        WINDOW
            below AS (PARTITION BY spans.grid, l.width, l.node ORDER BY l.position),
            everything AS (below ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    ) AS s
    GROUP BY s.grid, s.width, s.position
),
-- For linear estimates: the variance of the sums below the edge, above it, and of all.
span_squares AS (
    SELECT
        w.period, w.position, w.q, w.level, w.weight,
        CASE
            WHEN w.first > w.final THEN 0
            WHEN w.first // w.width = w.final // w.width THEN (w.final - w.first + 1.0) ** 2
            ELSE (w.width - w.first % w.width) ** 2.0 + (w.final % w.width + 1.0) ** 2
                + (w.final // w.width - w.first // w.width - 1) * w.width ** 2.0
        END * w.coefficient AS share
    FROM (
        SELECT
            edges.period, edges.position, edges.q, levels.level, levels.width, nested.coefficient * nested.squares AS coefficient,
            unnest([spans.first, edges.position + 1, spans.first]) AS first,
            unnest([edges.position, spans.final, spans.final]) AS final,
            unnest([1 - edges.q, edges.q, -edges.q * (1 - edges.q)]) AS weight
        FROM nested
        JOIN spans ON spans.grid = nested.grid
        JOIN levels ON levels.period = nested.period AND levels.level = nested.level AND levels.axis = spans.axis
        JOIN edges ON edges.period = nested.period
        WHERE levels.width > 0
    ) AS w
    UNION ALL
    SELECT
        edges.period, edges.position, edges.q, levels.level,
        unnest([1 - edges.q, edges.q, -edges.q * (1 - edges.q)]) AS weight,
        unnest([l.below, l.above, l.everything]) * nested.coefficient * nested.squares AS share
    FROM nested
    JOIN spans ON spans.grid = nested.grid
    JOIN levels ON levels.period = nested.period AND levels.level = nested.level AND levels.axis = spans.axis
    JOIN line_squares AS l ON l.grid = spans.grid AND l.width = levels.width
    JOIN edges ON edges.period = nested.period AND edges.position = l.position
),
span_variances AS (
    SELECT s.period, s.position, s.q, {{ exact_sum('s.weight * s.share') }} AS linear_variance
    FROM span_squares AS s
    GROUP BY s.period, s.position, s.q
),
-- For estimates from reports: the variance at each edge, and its largest change per record in the balance.
report_variances AS (
    SELECT
        e.period, e.position, e.q, {{ report_contrast('c', '(1 - e.q)', '(-e.q)', 'e.atoms_below', 'e.unbiased_below', 'e.atoms_above', 'e.unbiased_above') }} AS variance,
        greatest(
            abs(c.gamma * (1 - e.q) + c.delta * (e.atoms_below - e.q * (e.atoms_below + e.atoms_above))),
            abs(c.gamma * e.q - c.delta * (e.atoms_below - e.q * (e.atoms_below + e.atoms_above)))
        ) AS slope
    FROM edges AS e JOIN chosen AS c ON c.period = e.period
    WHERE c.step IS NOT NULL
),
reaching AS (
    SELECT v.*, CASE WHEN v.step IS NOT NULL THEN {{ report_reach('v', 'v.factor', 'variance') }} WHEN v.variance > 0 THEN {{ bound('v') }} ELSE 0 END AS half_width
    FROM (
        SELECT
            edges.*, chosen.revision, chosen.grid, chosen.has_bars, chosen.noise_scale, chosen.noise_variance, chosen.step,
            coalesce(s.linear_variance, r.variance) AS linear_variance, r.slope,
            coalesce(
                s.linear_variance,
                r.variance,
                chosen.noise_variance
                    * ((1 - edges.q) ** 2 * edges.cells_below + edges.q ** 2 * (edges.cells - edges.cells_below))
            ) AS variance,
            0.05 / greatest(1, spans.final - spans.first) AS missed, sqrt(2 * ln(2 / missed)) AS factor,
            edges.position = spans.first AS is_first, edges.position = spans.final AS is_last
        FROM edges
        JOIN chosen ON chosen.period = edges.period
        JOIN spans ON spans.grid = chosen.grid
        LEFT JOIN span_variances AS s
            ON s.period = edges.period AND s.position = edges.position AND s.q = edges.q
        LEFT JOIN report_variances AS r
            ON r.period = edges.period AND r.position = edges.position AND r.q = edges.q
    ) AS v
),
-- The first and the last bin that the band does not exclude.
bounded AS (
    SELECT
        r.period, r.q, any_value(r.revision) AS revision, any_value(r.grid) AS grid, any_value(r.has_bars) AS has_bars,
        any_value(r.linear_variance) AS linear_variance, any_value(r.cells) AS cells,
        any_value(r.estimate) AS total,
        coalesce(
            max(r.position + 1) FILTER (NOT r.is_last AND r.balance + r.half_width < 0),
            min(r.position)
        ) AS least,
        coalesce(
            min(r.position) FILTER (NOT r.is_last AND r.balance - r.half_width >= 0),
            max(r.position)
        ) AS most,
        CASE WHEN any_value(r.estimate) > 0 THEN
            coalesce(min(r.position) FILTER (r.estimate_below >= r.q * r.estimate), max(r.position))
        END AS position
    FROM reaching AS r
    GROUP BY r.period, r.q
),
barred AS (
    SELECT
        b.*, middle.first_value AS bin_lower, middle.last_value AS bin_upper,
        lowest.first_value AS ci_lower, highest.last_value AS ci_upper,
        {{ ends_in_words('middle', 'middle') }} AS bin,
        {{ ends_in_words('lowest', 'highest') }} AS ci_bins,
        (b.q * b.total - e.estimate_below + a.estimate) / a.estimate AS within
    FROM bounded AS b
    JOIN given ON true
    LEFT JOIN bins AS middle ON middle.grid = b.grid AND middle.axis = given.axis AND middle.position = b.position
    LEFT JOIN bins AS lowest
        ON lowest.grid = b.grid AND lowest.axis = given.axis AND lowest.position = least(b.least, b.most)
    LEFT JOIN bins AS highest
        ON highest.grid = b.grid AND highest.axis = given.axis AND highest.position = greatest(b.least, b.most)
    LEFT JOIN along AS a ON a.period = b.period AND a.position = b.position
    LEFT JOIN edges AS e ON e.period = b.period AND e.position = b.position AND e.q = b.q
),
{% include 'pieces/capping.sql' %}
first_problems AS (
    SELECT 'there is no binned axis ' || coalesce(given.axis, 'null') || ' in period ' || chosen.period || '; those are '
        || coalesce(
            (
                SELECT string_agg(axes.axis, ', ' ORDER BY axes.stride DESC)
                FROM axes WHERE axes.grid = chosen.grid AND axes.binned AND NOT axes.amount
            ),
            'none'
        ) AS problem
    FROM chosen, given
    WHERE NOT EXISTS (FROM axes WHERE axes.grid = chosen.grid AND axes.axis = given.axis AND axes.binned AND NOT axes.amount)
    UNION ALL
    SELECT 'a quantile lies between 0 and 1, as 0.5 or [0.25, 0.5], not ' || coalesce(CAST(q AS VARCHAR), 'null')
    FROM asked_shares
    HAVING NOT coalesce(bool_and(coalesce(asked_shares.q > 0 AND asked_shares.q < 1, false)), false)
)
SELECT
    barred.period,
    barred.revision,
    barred.q,
    CASE
        WHEN isfinite(barred.bin_lower) AND isfinite(barred.bin_upper)
            THEN barred.bin_lower + greatest(0, least(1, barred.within)) * (barred.bin_upper - barred.bin_lower)
    END AS estimate,
    CASE WHEN barred.has_bars THEN barred.ci_lower END AS ci_lower,
    CASE WHEN barred.has_bars THEN barred.ci_upper END AS ci_upper,
    CASE
        WHEN NOT barred.has_bars THEN 'noise_only'
        WHEN barred.linear_variance IS NULL THEN 'unbiased'
        ELSE 'linear'
    END AS basis,
    barred.cells,
    barred.bin_lower,
    barred.bin_upper,
    barred.bin,
    CASE WHEN barred.has_bars THEN barred.ci_bins END AS ci_bins,
    {% set note -%}
    CASE
        WHEN barred.position IS NULL THEN {{ notes.NO_WHOLE | literal }}
        WHEN NOT barred.has_bars THEN {{ notes.NO_INTERVAL | literal }}
        WHEN NOT (barred.bin_lower >= barred.ci_lower AND barred.bin_upper <= barred.ci_upper) THEN {{ notes.SMOOTHED | literal }}
        WHEN NOT (isfinite(barred.bin_lower) AND isfinite(barred.bin_upper)) THEN {{ notes.OPEN_BIN | literal }}
    END
    {%- endset -%}
    {{ noted(note, 'barred.cells') }} AS note,
    CASE
        WHEN capping.is_uncapped THEN NULL
        WHEN capping.cut IS NULL THEN {{ notes.CAP_UNKNOWN | literal }}
        ELSE {{ capped('capping') }}
    END AS capped,
    {{ days('barred.period', end_of('barred')) }}
FROM ({% include 'pieces/found.sql' %}) AS found LEFT JOIN barred ON true
LEFT JOIN capping ON capping.period = barred.period AND capping.revision = barred.revision
WHERE {% include 'pieces/no_problem.sql' %}
ORDER BY barred.period, barred.q
