-- What the macros that compare or add up publications ask: the sum in a box for each of them, with the variance of its noise, what the
-- bound cut and the problem of the question. One row for each publication, whose numbers are the struct `_summed`.
-- In: the release's table; a box as in dph_box; for each publication a period, a revision and its place in the question, as lists,
-- in which null stands for all periods and for the latest revision; the periods that must be there.
{% set periods = 'periods' -%}
{% set revisions = 'revisions' -%}
{% set places = 'places' -%}
{% set named_periods = 'named_periods' -%}
{% set written_revision = 'NULL' -%}
CREATE OR REPLACE MACRO {{ internals }}dph_summed(release_name, box, periods, revisions, places, named_periods) AS TABLE
{% include 'pieces/sums_of_boxes.sql' %}
{% include 'pieces/caps.sql' %}
rows AS (
    SELECT summed.* EXCLUDE (groups), caps.seen, caps.cut, caps.cut_lower, caps.cut_upper
    FROM summed LEFT JOIN caps
        ON caps.place = summed.place AND caps.period = summed.period AND caps.revision = summed.revision
)
SELECT found.problem AS _problem, rows AS _summed
FROM (SELECT min(p.problem) AS problem FROM problems AS p) AS found LEFT JOIN rows ON true
