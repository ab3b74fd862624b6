-- The estimated count in a box of cells, with its 95 % interval: one row for each period (its latest revision), in order.
-- In: the release's table, with the name of an attached catalogue before it ('r.weekly_admissions'); the box as a struct or as
-- JSON text: for each axis [low, high) in axis units (days as '2026-03-02') with null for an open end, or a category, null for
-- `other`, or a list of categories, or all cells but theirs as {'not': 'surgery'}. A label is taken for its code if no other
-- category has it. A level of a hierarchy takes the same conditions as its axis. An axis without a condition is summed over. A
-- period by its first day; without it all periods.
-- `reliability` is good if the standard deviation of the noise is at most 10 % of `unbiased`, fair up to 25 %, poor above or if the
-- interval reaches 0, and null without an interval. Where ends cut bins, a quarter of the interval's width stands for the noise.
CREATE OR REPLACE MACRO {{ schema }}dph_box(release_name, box := '{}', period := NULL, revision := NULL) AS TABLE
WITH dph_arguments AS (SELECT box AS box, period AS period, revision AS revision)
SELECT answered.*
FROM {{ named_view() }}, {{ inner('dph_one_box', {'box': 'box', 'period': 'period', 'revision': 'revision'}, constants={'asked_by': name}) }} AS answered
