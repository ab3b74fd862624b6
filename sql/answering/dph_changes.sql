-- The change of a count from each period to the next one that was published, with its 95 % interval: one row for each period but
-- the first (latest revisions), in order. Each interval holds with 95 % by itself. `note` says how many days between the two are in
-- no published period, and that a change in an individual account mixes what happened with who is still counted.
-- `chance` says whether the interval leaves chance out. `with_chance := true` adds it: counts then vary as Poisson's do around
-- their means, which is too little where persons have several rows.
-- `capped` tells how many rows the bound cut in each, where quality tables count them.
-- `by := ['age']` gives one row for each value of these axes or levels in which every box has cells, with the columns of the table:
-- what the question is told if its boxes have that value. Each interval holds with 95 % by itself; they do not all hold together.
-- In: the release's table; a box and a period as in dph_box: the change to that period.
{% set named_periods = '[period]' -%}
{% set rows_by = '"by"' -%}
{% set pairs = 'one.called = two.called AND one.period = (SELECT max(c.period) FROM summed AS c WHERE c.period < two.period)' -%}
{% set missing = missing_days('barred.missing_days', "', from ' || barred.first_end || ' on'") -%}
CREATE OR REPLACE MACRO {{ schema }}dph_changes(release_name, box := '{}', period := NULL, with_chance := false, by := NULL) AS TABLE
{% include 'pieces/summed.sql' %}
{% include 'pieces/change_of_two.sql' %},
first_problems AS (
    SELECT 'only one period is published; a change takes two' AS problem
    WHERE (SELECT count(DISTINCT summed.period) FROM summed) = 1
    UNION ALL
    SELECT 'there is no earlier period than ' || CAST(period AS VARCHAR)
    WHERE CAST(period AS VARCHAR) = (SELECT min(summed.period) FROM summed)
)
SELECT
    barred.first_period,
    barred.second_period,
    side.* EXCLUDE (_problem, _summed),
    {% include 'pieces/change.sql' %},
    {% include 'pieces/capped_of_two.sql' %},
    {{ days('barred.first_period', 'barred.first_end', 'first_') }},
    {{ days('barred.second_period', 'barred.second_end', 'second_') }}
FROM ({% include 'pieces/found_beside.sql' %}) AS found LEFT JOIN barred ON barred.second_period = coalesce(CAST(period AS VARCHAR), barred.second_period)
{% include 'pieces/columns_by.sql' %}
WHERE {% include 'pieces/no_problem.sql' %}
ORDER BY barred.first_period, barred.cell
