-- The estimated count in [low, high) of one axis, with its 95 % interval, whether or not the ends are edges of bins.
-- For each period (its latest revision) one row if both ends are edges (`exactly`). If an end lies within a bin, two rows: the
-- `inner` bins lie within the range, the `outer` bins overlap it, and the true count lies between the lower end of the inner
-- interval and the upper end of the outer interval with 95 %.
-- In: the release's table; a binned axis and its ends, days as '2026-03-02', null for an open end; a box for the other
-- axes and a period as in dph_box.
{% set along = "[coalesce(CAST(axis AS VARCHAR), '')]" -%}
{% set named = "SELECT unnest(['inner', 'outer']) AS name, 'box' AS source" -%}
{% set is_range = true -%}
{% set has_limits = true -%}
{% set arguments = ['box', 'period', 'revision'] -%}
{% set boxes = {'box': argument('box')} -%}
CREATE OR REPLACE MACRO {{ schema }}dph_range(release_name, axis, low, high, box := '{}', period := NULL, revision := NULL) AS TABLE
{% include 'pieces/opening.sql' %},
{% include 'pieces/bins.sql' %},
asked_range AS (SELECT CAST(low AS VARCHAR) AS low, CAST(high AS VARCHAR) AS high),
ranges AS (
    SELECT
        b.grid, b.axis, b.stride, b.size, b.calendar, b.binned AND NOT b.amount AS binned,
        asked_range.low AS written_low, asked_range.high AS written_high,
        CASE
            WHEN asked_range.low IS NULL THEN '-inf'
            WHEN b.calendar THEN date_diff('day', DATE '1970-01-01', TRY_CAST(asked_range.low AS DATE))
            ELSE TRY_CAST(asked_range.low AS DOUBLE)
        END AS low_end,
        CASE
            WHEN asked_range.high IS NULL THEN 'inf'
            WHEN b.calendar THEN date_diff('day', DATE '1970-01-01', TRY_CAST(asked_range.high AS DATE))
            ELSE TRY_CAST(asked_range.high AS DOUBLE)
        END AS high_end,
        b.least, b.greatest, b.first_edge, b.last_edge
    FROM (
        SELECT
            bins.grid, bins.axis, bins.stride, bins.size, bins.calendar, bins.binned, bins.amount,
            min(bins.bin_lower) AS least, max(bins.bin_upper) AS greatest,
            min_by(bins.lower_end, bins.bin_lower) AS first_edge, max_by(bins.upper_end, bins.bin_upper) AS last_edge
        FROM bins
        WHERE bins.axis = CAST(axis AS VARCHAR)
        GROUP BY bins.grid, bins.axis, bins.stride, bins.size, bins.calendar, bins.binned, bins.amount
    ) AS b, asked_range
),
{% include 'pieces/boxes.sql' %},
covered AS (
    SELECT
        p.name, p.grid, count(*) AS bins,
        min_by(bins.lower_end, bins.bin_lower) AS lower_end, max_by(bins.upper_end, bins.bin_upper) AS upper_end
    FROM positions AS p
    JOIN ranges ON ranges.grid = p.grid AND ranges.axis = p.axis
    JOIN bins ON bins.grid = p.grid AND bins.axis = p.axis AND bins.position = p.position
    WHERE p.is_wanted
    GROUP BY p.name, p.grid
),
{% include 'pieces/nested.sql' %},
{% include 'pieces/atoms.sql' %},
{% include 'pieces/sums.sql' %},
sets AS (
    SELECT s.name AS id, s.period, s.revision, s.cells, s.groups FROM summed AS s
),
{% include 'pieces/group_sums.sql' %},
reaching AS (
    SELECT summed.*, {{ reach() }} AS reach
    FROM summed
    {{ widths(release) }}
),
barred AS (
    SELECT
        reached.*,
        min(coalesce(covered.bins, 0)) OVER one_period = max(coalesce(covered.bins, 0)) OVER one_period AS is_exact,
        covered.lower_end, covered.upper_end
    FROM ({% include 'pieces/ends.sql' %}) AS reached
    LEFT JOIN covered ON covered.name = reached.name AND covered.grid = reached.grid
    WINDOW one_period AS (PARTITION BY reached.period)
    QUALIFY NOT is_exact OR reached.name = 'outer'
),
first_problems AS (
    SELECT 'there is no binned axis ' || coalesce(CAST(axis AS VARCHAR), 'null') || ' in period ' || chosen.period
        || '; those are ' || coalesce(
            (
                SELECT string_agg(axes.axis, ', ' ORDER BY axes.stride DESC)
                FROM axes WHERE axes.grid = chosen.grid AND axes.binned AND NOT axes.amount
            ),
            'none'
        ) AS problem
    FROM chosen
    WHERE NOT EXISTS (FROM ranges WHERE ranges.grid = chosen.grid AND ranges.binned)
    UNION ALL
    SELECT 'axis ' || ranges.axis || ' takes two ends' || CASE WHEN ranges.calendar THEN ', days as 2026-03-02' ELSE '' END
        || ', low below high, null for an open end'
    FROM ranges
    WHERE ranges.binned AND NOT coalesce(ranges.low_end < ranges.high_end AND NOT isnan(ranges.high_end), false)
    UNION ALL
    SELECT 'axis ' || ranges.axis || ' has bins from ' || ranges.first_edge || ' to ' || ranges.last_edge
        || ' only; leave an end open that lies beyond them'
    FROM ranges
    WHERE (ranges.low_end < ranges.least AND isfinite(ranges.low_end))
        OR (ranges.high_end > ranges.greatest AND isfinite(ranges.high_end))
)
SELECT
    barred.period,
    barred.revision,
    CASE WHEN barred.is_exact THEN 'exactly' ELSE barred.name END AS covers,
    CASE barred.lower_end WHEN '-inf' THEN 'and below' ELSE barred.lower_end END AS lower_end,
    CASE barred.upper_end WHEN 'inf' THEN 'and above' ELSE barred.upper_end END AS upper_end,
    {% include 'pieces/answer.sql' %},
    {{ days('barred.period', 'barred.period_end') }}
FROM ({% include 'pieces/found.sql' %}) AS found LEFT JOIN barred ON true
WHERE {% include 'pieces/no_problem.sql' %}
ORDER BY barred.period, barred.name
