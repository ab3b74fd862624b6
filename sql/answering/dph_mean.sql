-- The mean of a binned axis over the rows of a box, with its 95 % interval: one row for each period (its latest revision), in
-- order. `estimate` and `unbiased` put the rows of each bin in its middle. The interval assumes nothing about the position of
-- rows in a bin: its lower end puts them all at the lower ends, its upper end at the upper ends, and each end is missed with
-- 2.5 % (Fieller's method). Rows in `other` are not in the mean. From reports, the interval is that of the mean of the middles and
-- half of the widest bin on each side, so it holds wherever rows lie, too; there is none for a bin that is open.
-- `note` tells how far rows that do not lie in the middles of their bins may move the estimate.
-- `capped` tells how many rows the bound cut, from the quality table; without one, that the bias by the bound is not known.
-- `chance` says whether the interval leaves chance out. `with_chance := true` adds it: counts then vary as Poisson's do around
-- their means, which is too little where persons have several rows.
-- Numbers are in axis units, on a calendar axis days since 1970-01-01.
-- Of an amount, the mean is that of the kept rows with amounts cut to the declared ends, whatever their distribution: no middles.
-- `by := ['ward']` gives one row for each value of these axes or levels in which the box has cells, with the columns of the table:
-- what the question is told if the box has that value. Each interval holds with 95 % by itself; they do not all hold together.
-- In: the release's table; a binned axis, or an amount; low and high, within which all values lie, for bins that are open; a box and a period
-- as in dph_box.
CREATE OR REPLACE MACRO {{ schema }}dph_mean(
    release_name, axis, low := NULL, high := NULL, box := '{}', period := NULL, revision := NULL, with_chance := false, by := NULL
) AS TABLE
{% include 'pieces/moments.sql' %}
{% include 'pieces/capping.sql' %}
-- Both ends alike: the distance of the mean from the end of the bins is sum / rows; it may be up to `span`.
sides AS (
    SELECT m.*, e.*
    FROM moments AS m, LATERAL (
        SELECT
            unnest(['low', 'high']) AS side, unnest([m.lows, m.highs]) AS distance,
            unnest([m.low_span, m.high_span]) AS span, unnest([m.low_low, m.high_high]) AS square,
            unnest([m.low_rows, m.high_rows]) AS crossed,
            unnest([m.by_chance.low_low, m.by_chance.high_high]) AS square_by_chance,
            unnest([m.by_chance.low_rows, m.by_chance.high_rows]) AS crossed_by_chance
    ) AS e
),
reaching AS (
    SELECT
        f.*, f.distance * f.rows - f.factor ** 2 * (f.crossed + f.crossed_by_chance) AS half_linear,
        f.distance ** 2 - f.factor ** 2 * (f.square + f.square_by_chance) AS fixed,
        half_linear ** 2 - fixed * (f.rows ** 2 - f.factor ** 2 * (f.rows_rows + f.by_chance.rows)) AS discriminant
    FROM (SELECT d.*, {{ deviations('d') }} AS factor FROM (
        -- The draws at the mean at which the largest weight of a draw stands out most. Of nested estimates, no draw has a
        -- weight above `span`, because none has one above 1 in a sum of cells.
        SELECT
            e.*,
            greatest(0, e.square * e.rows_rows - e.crossed ** 2) / e.noise_variance / nullif(
                CASE
                    WHEN e.is_nested THEN e.span ** 2 * e.rows_rows
                    ELSE greatest(e.square, e.span ** 2 * e.rows_rows - 2 * e.span * e.crossed + e.square)
                END, 0
            ) AS draws
        FROM sides AS e
    ) AS d
    {{ widths_of('d', 'd.draws') }}) AS f
),
-- The smallest distance d at which sum - d * rows is not farther above 0 than its noise goes.
distances AS (
    SELECT
        r.period, r.revision, r.cell, r.side,
        -- Of an amount: are rows within their noise?
        r.half_part IS NOT NULL AND (r.rows <= 0 OR r.rows ** 2 <= r.factor ** 2 * (r.rows_rows + r.by_chance.rows)) AS is_unknown,
        CASE
            WHEN is_unknown THEN 0
            WHEN r.span = 0 OR r.distance <= 0 OR r.fixed <= 0 THEN 0
            WHEN r.discriminant >= 0 AND r.half_linear + sqrt(r.discriminant) > 0
                THEN least(r.span, r.fixed / (r.half_linear + sqrt(r.discriminant)))
            ELSE r.span
        END AS distance
    FROM reaching AS r
    WHERE r.noise_scale IS NOT NULL
),
means AS (
    SELECT
        m.*, CASE WHEN m.estimated_rows > 0 THEN m.estimated_middles / m.estimated_rows END AS ratio,
        CASE WHEN m.half_part IS NULL OR ratio IS NULL THEN ratio ELSE least(m.most, greatest(m.least, ratio)) END AS mean,
        CASE WHEN m.rows > 0 THEN m.middles / m.rows END AS unbiased,
        CASE WHEN m.middle_middle IS NOT NULL THEN
            greatest(0, m.middle_middle - 2 * unbiased * m.middle_rows + unbiased ** 2 * m.rows_rows)
        END AS variance
    FROM moments AS m
),
-- From reports: every mean at which the sum of (middle - mean) is not farther from 0 than `report_reach` goes. With x, the mean
-- less the estimated one, its variance is variance - 2 * crossed * x + rows_rows * x², which leaves a square in x on each side.
-- A mean of rows lies at most half of the widest bin from that of their middles.
report_ends AS (
    SELECT
        r.period, r.revision, r.cell,
        greatest(r.least, CASE
            WHEN r.rows > 0 AND r.square > 0 THEN greatest(
                r.least_middle,
                r.unbiased - (
                    r.half * r.rows + r.crossed
                    + sqrt((r.half * r.rows + r.crossed) ** 2 + r.square * r.fixed)
                ) / r.square
            )
            ELSE r.least_middle
        END - r.half_bin) AS ci_lower,
        least(r.most, CASE
            WHEN r.rows > 0 AND r.square > 0 THEN least(
                r.most_middle,
                r.unbiased + (
                    r.half * r.rows - r.crossed
                    + sqrt((r.half * r.rows - r.crossed) ** 2 + r.square * r.fixed)
                ) / r.square
            )
            ELSE r.most_middle
        END + r.half_bin) AS ci_upper
    FROM (
        SELECT
            m.*, greatest(abs(m.least_middle - m.unbiased), abs(m.most_middle - m.unbiased)) AS span,
            {{ normal }} ** 2 * (
                abs(m.gamma) * span + abs(m.delta * (m.middle_atoms - m.unbiased * m.atoms)) + m.step * span / 3
            ) / 2 AS half,
            {{ normal }} ** 2 * (
                m.middle_rows + m.by_chance.middle_rows - m.unbiased * (m.rows_rows + m.by_chance.rows)
            ) AS crossed,
            m.rows ** 2 - {{ normal }} ** 2 * (m.rows_rows + m.by_chance.rows) AS square,
            {{ normal }} ** 2 * (
                m.variance + m.by_chance.middle_middle - 2 * m.unbiased * m.by_chance.middle_rows
                    + m.unbiased ** 2 * m.by_chance.rows
            ) AS fixed
        FROM means AS m
        WHERE m.step IS NOT NULL AND m.has_middles
    ) AS r
),
barred AS (
    SELECT
        m.*, sqrt(m.variance) / m.rows AS noise_error,
        coalesce(lower.is_unknown, false) AS is_unknown,
        -- Amounts were rounded to parts of rows. `greatest` and `least` pass over nulls: without a distance there is no end.
        CASE WHEN lower.distance IS NULL THEN r.ci_lower
            ELSE greatest(m.least, m.least + lower.distance - coalesce(m.half_part, 0)) END AS ci_lower,
        CASE WHEN upper.distance IS NULL THEN r.ci_upper
            ELSE least(m.most, m.most - upper.distance + coalesce(m.half_part, 0)) END AS ci_upper
    FROM means AS m
    LEFT JOIN report_ends AS r ON r.period = m.period AND r.revision = m.revision AND r.cell = m.cell
    LEFT JOIN distances AS lower ON lower.period = m.period AND lower.revision = m.revision AND lower.cell = m.cell AND lower.side = 'low'
    LEFT JOIN distances AS upper ON upper.period = m.period AND upper.revision = m.revision AND upper.cell = m.cell AND upper.side = 'high'
)
SELECT
    barred.period,
    barred.revision,
    answered.* EXCLUDE (_moments),
    barred.mean AS estimate,
    barred.unbiased,
    barred.noise_error,
    barred.ci_lower,
    barred.ci_upper,
    CASE WHEN barred.ci_lower IS NULL THEN 'noise_only' ELSE 'linear' END AS basis,
    barred.cells,
    {% set note -%}
    CASE
        WHEN barred.mean IS NULL THEN {{ notes.NO_MEAN | literal }}
        WHEN barred.is_unknown THEN {{ notes.NO_ROWS | literal }}
        WHEN barred.step IS NOT NULL AND barred.ci_lower IS NULL THEN {{ notes.OPEN_MIDDLE | literal }}
        ELSE concat_ws(
            '; ',
            CASE
                WHEN barred.ci_lower IS NULL THEN {{ notes.NO_INTERVAL | literal }}
                WHEN barred.mean NOT BETWEEN barred.ci_lower - 1e-9 AND barred.ci_upper + 1e-9 THEN {{ notes.SMOOTHED | literal }}
            END,
            CASE WHEN barred.half_part IS NULL THEN {{ notes.MIDDLES_OF_ESTIMATE.format(what='mean') | literal }} || {{ number('(
                least(barred.half_bin, barred.moved_sum / greatest(0, coalesce(barred.rows, barred.estimated_rows)))
            )', digits=3) }}
                || CASE WHEN barred.ci_lower IS NOT NULL THEN {{ notes.MIDDLES_COVERED | literal }} ELSE '' END END
        )
    END
    {%- endset -%}
    {{ noted(note, 'barred.cells') }} AS note,
    {% include 'pieces/shifted.sql' %},
    {% include 'pieces/chance.sql' %},
    {{ days('barred.period', 'barred.period_end') }}
FROM barred
LEFT JOIN answered
    ON answered._moments.period = barred.period AND answered._moments.revision = barred.revision AND answered._moments.cell = barred.cell
LEFT JOIN capping ON capping.period = barred.period AND capping.revision = barred.revision
ORDER BY barred.period, barred.cell
