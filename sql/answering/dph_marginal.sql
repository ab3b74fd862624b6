-- The estimated counts by some axes, summed over the others, each with its 95 % interval: one row for each combination, in
-- declared order, for each period (its latest revision), with the column names of the release's table.
-- In: the release's table; a list of axes or of levels of their hierarchies, by name; a box and a period as in dph_box.
-- Each interval holds with 95 % by itself; they do not all hold together.
-- `reliability` is good if the standard deviation of the noise is at most 10 % of `unbiased`, fair up to 25 %, poor above or if the
-- interval reaches 0, and null without an interval.
{% set axes = 'axes' -%}
CREATE OR REPLACE MACRO {{ schema }}dph_marginal(release_name, axes, box := '{}', period := NULL, revision := NULL) AS TABLE
WITH dph_arguments AS (SELECT box AS box, period AS period, revision AS revision)
SELECT
    answered.* EXCLUDE (_first, _cells, _variance, _is_linear, _unbiased, _law, _answer, _cut, _period_end),
    unnest(answered._answer),
    {{ days('answered.period', 'answered._period_end') }}
FROM ({% include 'pieces/counted_by.sql' %}) AS answered
ORDER BY answered.period, answered._first
