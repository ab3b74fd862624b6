-- The estimated number of all (bounded) rows of a release, with its 95 % interval: one row for each period, in order.
-- In: the release's table, with the name of an attached catalogue before it ('r.weekly_admissions'); a period by its first
-- day; without it all periods.
{% set boxes = {} -%}
CREATE OR REPLACE MACRO {{ schema }}dph_total(release_name, period := NULL, revision := NULL) AS TABLE
{% include 'pieces/opening.sql' %},
{% include 'pieces/one_box.sql' %}
