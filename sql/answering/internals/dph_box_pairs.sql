-- What dph_ratio and dph_difference ask: two boxes of each publication, `first_box` and `second_box`, with the covariance of their
-- noise, as the struct `_pair`; one row for each value of the axes that it is asked by, whose columns these are. Variances by chance, if the
-- question asks for it, are those of the rows in the first box alone, in the second one alone and in both. `_cut` are the rows cut.
-- In: the name of the macro that asks, for its messages; `cut_told`, 'yes' if `_cut` and `is_part` are read; rows_by, axes or levels as
-- a list, or null; the other arguments of dph_ratio.
{% set asked_by = 'asked_by' -%}
{% set asked = 'with_chance' -%}
{% set rows_by = 'rows_by' -%}
{# Asked value by value, each would have a condition: the same table of a family answers. -#}
{% set along = 'coalesce(TRY_CAST(rows_by AS VARCHAR[]), [])' -%}
{% set columns = 't.*' -%}
{% set boxes = {'first': 'first_box', 'second': 'second_box'} -%}
{% set cut_in = {'first': 'first', 'second': 'second'} -%}
{# The rows of cells that lie in both boxes vary alike. -#}
{% set named -%}
    SELECT unnest(['first', 'second']) AS name, name AS source
    UNION ALL
    SELECT 'both', unnest(['first', 'second']) WHERE {{ asked }}
{%- endset -%}
{% set weights = 'SELECT i.*, 1 AS weight FROM inside_positions AS i' -%}
CREATE OR REPLACE MACRO {{ internals }}dph_box_pairs(
    release_name, asked_by, cut_told, rows_by, first_box, second_box, period, revision, with_chance
) AS TABLE
{% include 'pieces/opening.sql' %},
{% include 'pieces/bins.sql' %},
{% include 'pieces/boxes.sql' %},
{% include 'pieces/rows_by.sql' %},
{% include 'pieces/nested.sql' %},
{% include 'pieces/atoms.sql' %},
{% include 'pieces/sums.sql' %},
{% include 'pieces/covariances.sql' %},
reaching AS (
    SELECT summed.*, {{ reach() }} AS reach
    FROM summed
    {{ widths(release) }}
),
box_pairs AS (
    SELECT
        one.period, one.revision, one.cell, one.has_bars, one.is_known AND two.is_known AS is_known, one.step, one.noise_scale, one.noise_variance,
        one.step IS NULL AND one.linear_variance IS NOT NULL AS is_nested,
        CAST(one.cells + two.cells AS BIGINT) AS cells,
        one.estimate AS first_estimate, two.estimate AS second_estimate,
        one.unbiased AS first_unbiased, two.unbiased AS second_unbiased,
        one.reach.two AS first_reach, two.reach.two AS second_reach,
        -- A count that is known has no noise.
        CASE WHEN one.is_known THEN 0 ELSE v.first_square END AS first_square,
        CASE WHEN two.is_known THEN 0 ELSE v.second_square END AS second_square,
        CASE WHEN one.is_known OR two.is_known THEN 0 ELSE v.crossed END AS crossed,
        one.linear_variance AS first_variance, two.linear_variance AS second_variance,
        CASE WHEN one.cells > common.cells THEN greatest(0, one.unbiased - common.unbiased) + 1 ELSE 0 END AS first_alone,
        CASE WHEN two.cells > common.cells THEN greatest(0, two.unbiased - common.unbiased) + 1 ELSE 0 END AS second_alone,
        CASE WHEN common.cells > 0 THEN greatest(0, common.unbiased) + 1 ELSE 0 END AS alike
    FROM reaching AS one
    JOIN reaching AS two ON two.period = one.period AND two.revision = one.revision AND two.cell = one.cell
    LEFT JOIN summed AS common ON common.name = 'both' AND common.period = one.period AND common.revision = one.revision AND common.cell = one.cell
    LEFT JOIN (
        SELECT
            c.period, c.revision, c.cell,
            any_value(c.covariance) FILTER (c.first_name = 'first' AND c.second_name = 'first') AS first_square,
            any_value(c.covariance) FILTER (c.first_name = 'second' AND c.second_name = 'second') AS second_square,
            any_value(c.covariance) FILTER (c.first_name = 'first' AND c.second_name = 'second') AS crossed
        FROM covariances AS c
        GROUP BY c.period, c.revision, c.cell
    ) AS v ON v.period = one.period AND v.revision = one.revision AND v.cell = one.cell
    WHERE one.name = 'first' AND two.name = 'second'
),
{% include 'pieces/caps.sql' %}
{% include 'pieces/cut_along.sql' %}
-- Whether all cells of the first box lie in the second one.
lying AS (
    SELECT
        c.period, c.revision, c.cell, NOT EXISTS (
            FROM positions AS two
            LEFT JOIN positions AS one
                ON one.name = 'first' AND one.grid = two.grid AND one.axis = two.axis AND one.position = two.position
            LEFT JOIN by_positions AS b ON b.grid = two.grid AND b.axis = two.axis AND b.position = two.position
            JOIN row_axes AS r ON r.grid = two.grid AND r.axis = two.axis AND r.first = coalesce(b.first, -1)
            WHERE two.name = 'second' AND r.period = c.period AND r.revision = c.revision AND r.cell = c.cell AND NOT two.is_wanted AND coalesce(one.is_wanted, true)
        ) AS is_part
    FROM asked_rows AS c
    WHERE cut_told = 'yes'
),
paired AS (
    SELECT b.*, c.period_end, lying.is_part
    FROM box_pairs AS b JOIN chosen AS c ON c.period = b.period AND c.revision = b.revision
    LEFT JOIN lying ON lying.period = b.period AND lying.revision = b.revision AND lying.cell = b.cell
),
first_problems AS (FROM by_problems)
SELECT
    paired AS _pair, CASE WHEN cut_along.period IS NOT NULL THEN cut_along END AS _cut,
    grouped.* EXCLUDE (period, revision, _name, _first, _cells, _estimate, _unbiased, _known)
FROM ({% include 'pieces/found.sql' %}) AS found LEFT JOIN paired ON true
LEFT JOIN cut_along
    ON cut_told = 'yes' AND cut_along.period = paired.period AND cut_along.revision = paired.revision AND cut_along.cell = paired.cell
{% set of_box = 'second' -%}
{% set row = 'paired' -%}
{% include 'pieces/columns_of_rows.sql' %}
WHERE {% include 'pieces/no_problem.sql' %}
