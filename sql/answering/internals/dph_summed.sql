-- What the macros that compare or add up publications ask: the sum in a box for each of them, with the variance of its noise, what the
-- bound cut and the problem of the question. One row for each publication and
-- each value of the axes that it is asked by, whose columns these are; the numbers are the struct `_summed`.
-- In: the release's table; a box as in dph_box; for each publication a period, a revision and its place in the question, as lists,
-- in which null stands for all periods and for the latest revision; the periods that must be there; axes or levels that rows are
-- asked by, as a list, or null.
{% set rows_by = 'rows_by' -%}
{# Asked value by value, each would have a condition: the same table of a family answers. -#}
{% set along = 'coalesce(TRY_CAST(rows_by AS VARCHAR[]), [])' -%}
{% set columns = 't.*' -%}
{% set also = 'r.charge, r.reason' -%}
{% set periods = 'periods' -%}
{% set revisions = 'revisions' -%}
{% set places = 'places' -%}
{% set named_periods = 'named_periods' -%}
CREATE OR REPLACE MACRO {{ internals }}dph_summed(release_name, box, periods, revisions, places, named_periods, rows_by) AS TABLE
{% include 'pieces/sums_of_boxes.sql' %}
{% include 'pieces/caps.sql' %}
first_problems AS (FROM by_problems),
counted AS (
    SELECT summed.*, caps.seen, caps.cut, caps.cut_lower, caps.cut_upper
    FROM summed LEFT JOIN caps
        ON caps.place = summed.place AND caps.period = summed.period AND caps.revision = summed.revision
)
SELECT
    found.problem AS _problem, counted AS _summed,
    grouped.* EXCLUDE (period, revision, _name, _first, _cells, _estimate, _unbiased, _known)
FROM ({% include 'pieces/found.sql' %}) AS found
LEFT JOIN counted ON true
{% set of_box = 'box' -%}
{% set row = 'counted' -%}
{% include 'pieces/columns_of_rows.sql' %}
