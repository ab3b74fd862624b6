-- The count in a box of one release less that in a box of another of the same account, with its 95 % interval: one row for each
-- period that both have (latest revisions), in order. Their noise is independent; that of two tables of a family is not, so
-- their interval is wider: ask dph_difference of a table that has both boxes, if there is one.
-- In: the tables of two releases of one catalogue, the one that is subtracted first, as in dph_compare; a box and a period as in
-- dph_box; a box of the second release, if its axes have other names.
{% set pairs = 'one.place = 1 AND two.place = 2 AND two.period = one.period' -%}
{# The same people may be in both. -#}
{% set asked = 'false' -%}
{% set chance_outside = notes.CHANCE_OF_RELEASES | literal -%}
{% set names = name_of('first_release') ~ ', ' ~ name_of('second_release') -%}
{% set arguments = {'periods': 'periods', 'revisions': 'revisions', 'named_periods': 'periods'} -%}
CREATE OR REPLACE MACRO {{ schema }}dph_compare_releases(
    first_release, second_release, box := '{}', period := NULL, second_box := NULL
) AS TABLE
WITH dph_arguments AS (
    SELECT
        box AS box, coalesce(CAST(second_box AS VARCHAR), CAST(box AS VARCHAR)) AS second_box,
        CAST([period] AS VARCHAR[]) AS periods, CAST([NULL] AS BIGINT[]) AS revisions, [1] AS first_place, [2] AS second_place
),
side AS (
    SELECT answered.*
    FROM {{ named_view('first_release') }},
        {{ inner('dph_summed', dict(arguments, box='box', places='first_place'), 'first_release', 'NULL') }} AS answered
    UNION ALL
    SELECT answered.*
    FROM {{ named_view('second_release') }},
        {{ inner('dph_summed', dict(arguments, box='second_box', places='second_place'), 'second_release', 'NULL') }} AS answered
),
summed AS (SELECT unnest(side._summed) FROM side WHERE side._summed.period IS NOT NULL),
{%- set release = 'first_release' %}
{% include 'pieces/change_of_two.sql' %},
owners AS (
    SELECT
        lower(r.release) AS release, any_value(r.account || '''' || ' and unit ''' || r.privacy_unit) AS owner
    FROM {{ table('dph_releases', 'first_release') }} AS r
    GROUP BY r.release
),
first_problems AS (
    SELECT 'release ' || one.release || ' is of account ''' || one.owner || ''', ' || two.release || ' of ''' || two.owner
        || ''': they do not count the same people' AS problem
    FROM owners AS one, owners AS two
    WHERE one.release = lower(trim(split_part(first_release, '.', -1), '"'))
        AND two.release = lower(trim(split_part(second_release, '.', -1), '"')) AND one.owner <> two.owner
    UNION ALL
    SELECT 'the two releases are one, whose noise is not independent; ask dph_difference or dph_compare'
    WHERE lower(trim(split_part(first_release, '.', -1), '"')) = lower(trim(split_part(second_release, '.', -1), '"'))
    UNION ALL
    SELECT 'the two releases have no period in common' WHERE NOT EXISTS (FROM together)
    UNION ALL
    SELECT s._problem FROM side AS s
)
SELECT
    barred.first_period AS period,
    {% include 'pieces/change.sql' %},
    {{ days('barred.first_period', 'barred.first_end') }}
FROM (SELECT min(f.problem) AS problem FROM first_problems AS f) AS found LEFT JOIN barred ON true
WHERE {% include 'pieces/no_problem.sql' %}
ORDER BY barred.first_period
