-- Two boxes of each publication, `first_box` and `second_box`, with the covariance of their noise: rows of `box_pairs`. Variances by
-- chance, if the question asks for it, are those of the rows in the first box alone, in the second one alone and in both.
{# The rows of cells that lie in both boxes vary alike. -#}
{% set named -%}
    SELECT unnest(['first', 'second']) AS name, name AS source
    UNION ALL
    SELECT 'both', unnest(['first', 'second']) WHERE {{ asked }}
{%- endset -%}
{% set weights = 'SELECT i.*, 1 AS weight FROM inside_positions AS i' -%}
{% include 'pieces/boxes_asked.sql' %},
{% include 'pieces/boxes.sql' %},
{% if rows_by is defined %}{% include 'pieces/rows_by.sql' %},
{% endif %}{% include 'pieces/nested.sql' %},
{% include 'pieces/atoms.sql' %},
{% include 'pieces/sums.sql' %},
{% include 'pieces/covariances.sql' %},
reaching AS (
    SELECT summed.*, {{ reach(release) }} AS reach FROM summed
),
box_pairs AS (
    SELECT
        one.period, one.revision, {{ 'one.cell, ' if rows_by is defined }}one.has_bars, one.step, one.noise_scale, one.noise_variance,
        one.step IS NULL AND one.linear_variance IS NOT NULL AS is_nested,
        CAST(one.cells + two.cells AS BIGINT) AS cells,
        one.estimate AS first_estimate, two.estimate AS second_estimate,
        one.unbiased AS first_unbiased, two.unbiased AS second_unbiased,
        one.reach.two AS first_reach, two.reach.two AS second_reach,
        v.first_square, v.second_square, v.crossed,
        one.linear_variance AS first_variance, two.linear_variance AS second_variance,
        CASE WHEN one.cells > common.cells THEN greatest(0, one.unbiased - common.unbiased) + 1 ELSE 0 END AS first_alone,
        CASE WHEN two.cells > common.cells THEN greatest(0, two.unbiased - common.unbiased) + 1 ELSE 0 END AS second_alone,
        CASE WHEN common.cells > 0 THEN greatest(0, common.unbiased) + 1 ELSE 0 END AS alike
    FROM reaching AS one
    JOIN reaching AS two ON two.period = one.period AND two.revision = one.revision{{ ' AND two.cell = one.cell' if rows_by is defined }}
    LEFT JOIN summed AS common ON common.name = 'both' AND common.period = one.period AND common.revision = one.revision{{ ' AND common.cell = one.cell' if rows_by is defined }}
    LEFT JOIN (
        SELECT
            c.period, c.revision,{{ ' c.cell,' if rows_by is defined }}
            any_value(c.covariance) FILTER (c.first_name = 'first' AND c.second_name = 'first') AS first_square,
            any_value(c.covariance) FILTER (c.first_name = 'second' AND c.second_name = 'second') AS second_square,
            any_value(c.covariance) FILTER (c.first_name = 'first' AND c.second_name = 'second') AS crossed
        FROM covariances AS c
        GROUP BY c.period, c.revision{{ ', c.cell' if rows_by is defined }}
    ) AS v ON v.period = one.period AND v.revision = one.revision{{ ' AND v.cell = one.cell' if rows_by is defined }}
    WHERE one.name = 'first' AND two.name = 'second'
)
