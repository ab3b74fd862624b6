-- The estimated number of all (bounded) rows of a release, with its 95 % interval: one row for each period, in order.
-- In: the release's table, with the name of an attached catalogue before it ('r.weekly_admissions'); a period by its first
-- day; without it all periods.
CREATE OR REPLACE MACRO {{ schema }}dph_total(release_name, period := NULL, revision := NULL) AS TABLE
WITH dph_arguments AS (SELECT '{}' AS box, period AS period, revision AS revision)
SELECT answered.*
FROM {{ named_view() }}, {{ inner('dph_one_box', {'box': 'box', 'period': 'period', 'revision': 'revision'}, constants={'asked_by': name}) }} AS answered
