-- The sum of each named box, and the variance of its noise: rows of `summed`. Public figures stand in the place of sums that are known.
-- With `spread`, also the sums in which the rows of cut bins are spread evenly.
{% if rows_by is defined %}{% set key, counted = ['name', 'period', 'revision', 'cell'], 'keyed' %}{% else %}{% set key, counted = ['name', 'period', 'revision'], 'box_sums' %}-- Materialized: else all cells would be read twice.
box_sums AS MATERIALIZED (
    SELECT
        c.name, c.period, c.revision,
        count(*) AS cells, {{ exact_sum('t.estimate') }} AS estimate, {{ exact_sum('t.unbiased_estimate') }} AS unbiased{% if spread is defined %},
        {{ exact_sum('t.estimate * ' ~ weight()) }} AS spread_estimate,
        {{ exact_sum('t.unbiased_estimate * ' ~ weight()) }} AS spread_unbiased{% endif %},
        histogram(t.group_id) FILTER (t.unbiased_estimate IS NULL) AS groups,
        histogram(t._known_group) FILTER (t._known_group IS NOT NULL) AS known_groups
    FROM conditions AS c JOIN dph_cells AS t ON {{ inside() }}
    GROUP BY c.name, c.period, c.revision
),
{% endif %}{% include 'pieces/known.sql' %},
summed AS (
    SELECT
        s.* EXCLUDE (estimate, unbiased),
        coalesce(s.known_least = s.known_most, false) AS is_known,
        -- A count that is known has no noise.
        CASE WHEN is_known THEN s.known_most ELSE s.estimate END AS estimate,
        CASE WHEN is_known THEN s.known_most ELSE s.unbiased END AS unbiased,
        CASE WHEN is_known THEN 0 ELSE coalesce(s.nested_variance, {{ report_variance('s', 's.atoms', 's.unbiased') }}) END AS linear_variance,
        abs(s.gamma + s.delta * s.atoms) AS slope
    FROM (
        SELECT
            c.* EXCLUDE (cells, allowed, first_cell, final_cell, is_run{{ ', is_cut' if spread is not defined }}),
            variances.linear_variance AS nested_variance,
            known_limits.known_least, known_limits.known_most,
            coalesce(atoms.atoms, 0) AS atoms,
            coalesce(inside.cells, 0) AS cells,
            {{ 'r.cell, r.called' if rows_by is defined else 'inside.groups' }},
            coalesce(inside.estimate, 0) AS estimate,
            coalesce(inside.unbiased, CASE WHEN c.has_bars THEN 0 END) AS unbiased{% if spread is defined %},
            inside.spread_estimate,
            inside.spread_unbiased{% endif %}
        FROM conditions AS c
        {% if rows_by is defined %}JOIN asked_rows AS r ON r.period = c.period AND r.revision = c.revision
        LEFT JOIN keyed AS inside
        {%- else %}LEFT JOIN box_sums AS inside{% endif %} ON inside.name = c.name AND inside.period = c.period AND inside.revision = c.revision{{ ' AND inside.cell = r.cell' if rows_by is defined }}
        LEFT JOIN (
            SELECT nested.name, nested.period, nested.revision, {{ 'nested.cell, ' if rows_by is defined }}{{ exact_sum('nested.coefficient * nested.squares') }} AS linear_variance
            FROM nested
            GROUP BY nested.name, nested.period, nested.revision{{ ', nested.cell' if rows_by is defined }}
        ) AS variances
            ON variances.name = c.name AND variances.period = c.period AND variances.revision = c.revision{{ ' AND variances.cell = r.cell' if rows_by is defined }}
        LEFT JOIN known_limits
            ON known_limits.name = c.name AND known_limits.period = c.period AND known_limits.revision = c.revision{{ ' AND known_limits.cell = r.cell' if rows_by is defined }}
        LEFT JOIN atoms ON atoms.name = c.name AND atoms.period = c.period AND atoms.revision = c.revision{{ ' AND atoms.cell = r.cell' if rows_by is defined }}
    ) AS s
)
