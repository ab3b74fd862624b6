-- The sum of a binned axis over the rows of a box, with its 95 % interval: one row for each period (its latest revision), in
-- order. `estimate` and `unbiased` put the rows of each bin in its middle. The interval assumes nothing about the position of
-- rows in a bin: its lower end puts them all at the lower ends, its upper end at the upper ends, and each end is missed with
-- 2.5 %. Rows in `other` are not in the sum. From reports, the ends put rows half of the widest bin off the middles: see dph_mean.
-- `capped` tells how many rows the bound cut, from the quality table; without one, that the bias by the bound is not known.
-- `chance` says whether the interval leaves chance out. `with_chance := true` adds it: counts then vary as Poisson's do around
-- their means, which is too little where persons have several rows.
-- Of an amount, the sum is that of the kept rows with amounts cut to the declared ends, whatever their distribution: no middles.
-- `by := ['ward']` gives one row for each value of these axes or levels in which the box has cells, with the columns of the table:
-- what the question is told if the box has that value. Each interval holds with 95 % by itself; they do not all hold together.
-- In: the release's table; a binned axis that is no calendar, or an amount; low and high, within which all values lie, for bins that are open;
-- a box and a period as in dph_box.
CREATE OR REPLACE MACRO {{ schema }}dph_sum(
    release_name, axis, low := NULL, high := NULL, box := '{}', period := NULL, revision := NULL, with_chance := false, by := NULL
) AS TABLE
{% include 'pieces/moments.sql' %}
{% include 'pieces/capping.sql' %}
sides AS (
    SELECT m.*, e.*, e.square / m.noise_variance / nullif(e.largest ** 2, 0) AS draws
    FROM moments AS m, LATERAL (
        SELECT
            unnest(['low', 'high']) AS side,
            unnest([m.least * m.rows + m.lows, m.most * m.rows - m.highs]) AS total,
            unnest([
                m.low_low + 2 * m.least * m.low_rows + m.least ** 2 * m.rows_rows,
                m.high_high - 2 * m.most * m.high_rows + m.most ** 2 * m.rows_rows
            ]) AS square,
            unnest([m.by_chance.lower_ends, m.by_chance.upper_ends]) AS square_by_chance,
            -- Of nested estimates, no draw has a weight above that of all cells with one sign and those with the other.
            unnest([
                CASE
                    WHEN m.is_nested THEN greatest(0, m.least + m.low_span) - least(0, m.least)
                    ELSE greatest(abs(m.least), abs(m.least + m.low_span))
                END,
                CASE
                    WHEN m.is_nested THEN greatest(0, m.most) - least(0, m.most - m.high_span)
                    ELSE greatest(abs(m.most), abs(m.most - m.high_span))
                END
            ]) AS largest
    ) AS e
),
reaching AS (
    SELECT
        d.period, d.revision, d.cell, d.side, d.total, coalesce({{ deviations('d') }}, 0) AS factor,
        factor * sqrt(greatest(0, d.square) + d.square_by_chance)
            -- Rounding to parts, for each row of the upper end of rows.
            + coalesce(d.half_part, 0) * greatest(0, d.rows + factor * sqrt(d.rows_rows + d.by_chance.rows)) AS half_width
    FROM sides AS d
    {{ widths_of('d', 'd.draws') }}
    WHERE d.noise_scale IS NOT NULL
),
-- From reports: all rows `off` the middles of their bins. No bin is wider than twice that.
report_reaching AS (
    SELECT r.period, r.revision, r.cell, r.off < 0 AS is_lower, r.total, {{ report_reach('r', normal, 'variance') }} AS half_width
    FROM (
        SELECT
            m.period, m.revision, m.cell, m.off, m.middles + m.off * m.rows AS total,
            greatest(0, m.middle_middle + 2 * m.off * m.middle_rows + m.off ** 2 * m.rows_rows)
                + m.by_chance.middle_middle + 2 * m.off * m.by_chance.middle_rows + m.off ** 2 * m.by_chance.rows AS variance,
            greatest(abs(m.least_middle + m.off), abs(m.most_middle + m.off)) AS span,
            abs(m.gamma) * span + abs(m.delta * (m.middle_atoms + m.off * m.atoms)) AS slope, m.step * span AS step
        FROM (
            SELECT moments.*, unnest([-moments.half_bin, moments.half_bin]) AS off FROM moments
            WHERE moments.step IS NOT NULL AND moments.has_middles
        ) AS m
    ) AS r
),
barred AS (
    SELECT
        m.*, coalesce(lower.total - lower.half_width, low.total - low.half_width) AS ci_lower,
        coalesce(upper.total + upper.half_width, high.total + high.half_width) AS ci_upper,
        CASE WHEN m.middle_middle IS NOT NULL THEN sqrt(greatest(0, m.middle_middle)) END AS noise_error
    FROM moments AS m
    LEFT JOIN report_reaching AS low ON low.period = m.period AND low.revision = m.revision AND low.cell = m.cell AND low.is_lower
    LEFT JOIN report_reaching AS high ON high.period = m.period AND high.revision = m.revision AND high.cell = m.cell AND NOT high.is_lower
    LEFT JOIN reaching AS lower ON lower.period = m.period AND lower.revision = m.revision AND lower.cell = m.cell AND lower.side = 'low'
    LEFT JOIN reaching AS upper ON upper.period = m.period AND upper.revision = m.revision AND upper.cell = m.cell AND upper.side = 'high'
)
SELECT
    barred.period,
    barred.revision,
    answered.* EXCLUDE (_moments),
    barred.estimated_middles AS estimate,
    barred.middles AS unbiased,
    barred.noise_error,
    barred.ci_lower,
    barred.ci_upper,
    CASE WHEN barred.ci_lower IS NULL THEN 'noise_only' ELSE 'linear' END AS basis,
    barred.cells,
    {% set note -%}
    CASE
        WHEN barred.step IS NOT NULL AND barred.ci_lower IS NULL THEN {{ notes.OPEN_MIDDLE | literal }}
        ELSE concat_ws(
            '; ',
            CASE
                WHEN barred.ci_lower IS NULL THEN {{ notes.NO_INTERVAL | literal }}
                WHEN barred.estimated_middles NOT BETWEEN barred.ci_lower - 1e-9 AND barred.ci_upper + 1e-9
                    THEN {{ notes.SMOOTHED | literal }}
            END,
            CASE WHEN barred.half_part IS NULL THEN {{ notes.MIDDLES_OF_ESTIMATE.format(what='sum') | literal }} || {{ number('(barred.moved_sum)', digits=3) }}
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
