-- The change of a count from one period to another, with its 95 % interval: one row, from the latest revisions.
-- `chance` says whether the interval leaves chance out. `with_chance := true` adds it: counts then vary as Poisson's do around
-- their means, which is too little where persons have several rows.
-- `capped` tells how many rows the bound cut in each, where quality tables count them.
-- `by := ['age']` gives one row for each value of these axes or levels in which every box has cells, with the columns of the table:
-- what the question is told if its boxes have that value. Each interval holds with 95 % by itself; they do not all hold together.
-- In: the release's table; two periods by their first days, the earlier one first; a box as in dph_box; a list of their two
-- revisions, which may be of one period.
{% set periods = '[CAST(first_period AS VARCHAR), CAST(second_period AS VARCHAR)]' -%}
{% set revisions = 'coalesce(TRY_CAST(CAST(revision AS VARCHAR) AS BIGINT[]), [NULL, NULL])[:2]' -%}
{% set places = '[1, 2]' -%}
{% set rows_by = '"by"' -%}
{% set pairs = 'one.called = two.called AND one.place = 1 AND two.place = 2' -%}
{% set same_records = 'barred.first_period = barred.second_period' -%}
CREATE OR REPLACE MACRO {{ schema }}dph_compare(
    release_name, first_period, second_period, box := '{}', revision := NULL, with_chance := false, by := NULL
) AS TABLE
{% include 'pieces/summed.sql' %}
{% include 'pieces/change_of_two.sql' %},
first_problems AS (
    SELECT 'a comparison takes two periods, by their first days, or two revisions of one period' AS problem
    WHERE first_period IS NULL OR second_period IS NULL
        OR (SELECT count(DISTINCT summed.place) = 2 AND count(DISTINCT (summed.period, summed.revision)) = 1 FROM summed)
    UNION ALL
    SELECT 'a change of revisions takes two numbers, as in revision := [1, 2]'
    WHERE revision IS NOT NULL AND coalesce(len(TRY_CAST(CAST(revision AS VARCHAR) AS BIGINT[])) <> 2, true)
)
SELECT
    barred.first_period,
    barred.second_period,
    side.* EXCLUDE (_problem, _summed),
    {% include 'pieces/change.sql' %},
    {% include 'pieces/capped_of_two.sql' %},
    {{ days('barred.first_period', 'barred.first_end', 'first_') }},
    {{ days('barred.second_period', 'barred.second_end', 'second_') }}
FROM ({% include 'pieces/found_beside.sql' %}) AS found LEFT JOIN barred ON true
{% include 'pieces/columns_by.sql' %}
WHERE {% include 'pieces/no_problem.sql' %}
ORDER BY barred.first_period, barred.cell
