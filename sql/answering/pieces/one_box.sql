-- The rest of a macro that answers for one box: one row for each publication. If the box cuts bins, the estimate spreads
-- their rows evenly, and the interval runs from the lower end for the bins within the box to the upper end for those around it.
{% set named -%}
    SELECT 'around' AS name, 'box' AS source
    UNION ALL
    SELECT 'inner' AS name, 'box' AS source WHERE EXISTS (FROM cuts)
{%- endset -%}
{% set takes_any_end = 'true' -%}
{% set spread = true -%}
{% set problems_alone = true -%}
{% set has_limits = true -%}
{% set cut_note -%}
    {% set before, after = notes.CUT.split('{axes}') -%}
    WHEN barred.cut_axes IS NOT NULL THEN {{ before | literal }} || barred.cut_axes || {{ after | literal }}
            || CASE
                WHEN barred.ci_lower IS NOT NULL THEN {{ notes.CUT_COVERED | literal }}
                WHEN barred.has_sums THEN {{ ('; ' ~ notes.CUTS_GROUP) | literal }}
                ELSE {{ ('; ' ~ notes.NO_INTERVAL) | literal }}
            END
            || coalesce('; did you mean ' || barred.meant || '?', '')
        {% endset -%}
{% set judged_error -%}
    {% include 'pieces/judged_error.sql' %}
{%- endset -%}
{% include 'pieces/bins.sql' %},
{% include 'pieces/boxes.sql' %},
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
reached AS (
    {% include 'pieces/ends.sql' %}
),
barred AS (
    SELECT
        r.* EXCLUDE (estimate, unbiased, spread_estimate, spread_unbiased, basis, noise_error, ci_lower, ci_upper),
        r.ci_upper IS NOT NULL AND (NOT r.is_cut OR within.ci_lower IS NOT NULL) AS has_ends,
        CASE WHEN r.is_cut THEN coalesce(r.spread_estimate, 0) ELSE r.estimate END AS estimate,
        CASE WHEN r.is_cut THEN r.spread_unbiased ELSE r.unbiased END AS unbiased,
        CASE WHEN has_ends THEN r.noise_error END AS noise_error,
        CASE
            WHEN NOT has_ends THEN NULL
            WHEN r.is_cut AND r.known_most IS NOT NULL THEN least(within.ci_lower, r.spread_unbiased)
            ELSE coalesce(within.ci_lower, r.ci_lower)
        END AS ci_lower,
        CASE
            WHEN NOT has_ends THEN NULL
            WHEN r.is_cut AND r.known_most IS NOT NULL THEN greatest(r.ci_upper, r.spread_unbiased)
            ELSE r.ci_upper
        END AS ci_upper,
        CASE WHEN NOT has_ends THEN 'noise_only' WHEN r.is_known AND r.is_cut AND coalesce(within.known_least, 0) <> r.known_most THEN 'linear' ELSE r.basis END AS basis,
        cut.axes AS cut_axes, cut.meant
    FROM reached AS r
    LEFT JOIN (
        SELECT
            c.grid, string_agg(c.axis, ', ' ORDER BY c.stride DESC) AS axes,
            string_agg(meant.range, ' and ' ORDER BY c.stride DESC) AS meant
        FROM (SELECT DISTINCT cuts.grid, cuts.axis, cuts.stride FROM cuts) AS c
        LEFT JOIN meant ON meant.grid = c.grid AND meant.axis = c.axis
        GROUP BY c.grid
    ) AS cut ON cut.grid = r.grid
    LEFT JOIN reached AS within
        ON within.name = 'inner' AND within.period = r.period AND within.revision = r.revision
    WHERE r.name = 'around'
)
SELECT
    barred.period,
    barred.revision,
    {% include 'pieces/answer.sql' %},
    {{ days('barred.period', 'barred.period_end') }}
FROM ({% include 'pieces/found.sql' %}) AS found LEFT JOIN barred ON true
WHERE {% include 'pieces/no_problem.sql' %}
ORDER BY barred.period
