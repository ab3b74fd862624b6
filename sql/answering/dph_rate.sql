-- Counts by some axes for each `per` people of a population, with 95 % intervals: one row for each combination, in declared order,
-- for each period (its latest revision). The population is public and exact, so an interval is that of the count, divided.
-- Rows of `other` have no population and are left out. A row whose population is 0 or missing has no rate; `note` says why.
-- `capped` tells how many rows the bound cut, from the quality table. Where they are told from noise, and axes and box are
-- of one axis alone and the table has that axis, it tells by how much they move the answer, with an interval of about 95 %.
-- Without a quality table the bias is not known, as it says.
-- `chance` says whether the interval leaves chance out. `with_chance := true` adds it: counts then vary as Poisson's do around
-- their means, which is too little where persons have several rows.
-- In: the release's table; a list of axes or levels; the name of a table of yours with a column `population` and those of the
-- axes as in dph_marginal (for a binned axis its `_lower` and `_upper`, null for an open end; or one value inside of a bin, such
-- as a year of age), and `period` if it differs; per; a box and a period as in dph_box. Finer rows of your table are added up:
-- bins inside the bins, the categories of a level, and other columns, such as the sex. Leave out rows that are sums already.
{% set axes = 'axes' -%}
{% set is_cut_told = true -%}
{% set measured -%}
    WHEN answered._cut.cut IS NOT NULL THEN {{ moved(
        'rate',
        number('(0 - least(capping.cut_upper, greatest(0, answered._cut.cut)) * per / m.people)', '+'),
        number('(
            0 - least(
                capping.cut_upper,
                CASE
                    WHEN answered._cut.cut + answered._cut.reach > 0 THEN answered._cut.cut + answered._cut.reach
                    ELSE answered._cut.reach
                END
            ) * per / m.people
        )', '+'),
        number('(0 - least(capping.cut_upper, greatest(0, answered._cut.cut - answered._cut.reach)) * per / m.people)', '+')
    ) }}
{%- endset -%}
CREATE OR REPLACE MACRO {{ schema }}dph_rate(
    release_name, axes, population_table, per := 100000, box := '{}', period := NULL, revision := NULL,
    with_chance := false
) AS TABLE
WITH dph_arguments AS (SELECT box AS box, period AS period, revision AS revision),
{% include 'pieces/matched.sql' %},
{% include 'pieces/capping.sql' %}
first_problems AS (FROM population_problems)
SELECT
    answered.* EXCLUDE (_first, _cells, _variance, _is_linear, _unbiased, _law, _answer, _cut, _period_end),
    m.population,
    answered._answer.estimate * per / m.people AS estimate,
    answered._answer.unbiased * per / m.people AS unbiased,
    answered._answer.noise_error * per / m.people AS noise_error,
    CASE
        WHEN {{ asked }} THEN answered._answer.unbiased - {{ with_chance(
            asked, '(answered._answer.unbiased - answered._answer.ci_lower)', 'greatest(0, answered._answer.unbiased) + 1'
        ) }}
        ELSE answered._answer.ci_lower
    END * per / m.people AS ci_lower,
    CASE
        WHEN {{ asked }} THEN answered._answer.unbiased + {{ with_chance(
            asked, '(answered._answer.ci_upper - answered._answer.unbiased)', 'greatest(0, answered._answer.unbiased) + 1'
        ) }}
        ELSE answered._answer.ci_upper
    END * per / m.people AS ci_upper,
    answered._answer.basis AS basis,
    answered._answer.cells AS cells,
    coalesce(m.reason, nullif(concat_ws('; ', answered._answer.note, m.added_up), '')) AS note,
    CASE WHEN m.reason IS NULL THEN answered._answer.reliability END AS reliability,
    {% include 'pieces/shifted.sql' %},
    {% include 'pieces/chance.sql' %},
    {{ days('answered.period', 'answered._period_end') }}
FROM (SELECT min(f.problem) AS problem FROM first_problems AS f) AS found LEFT JOIN (
    answered JOIN (SELECT m.*, CASE WHEN m.reason IS NULL THEN m.population END AS people FROM matched AS m) AS m ON m.period = answered.period AND m._first = answered._first
) ON true
LEFT JOIN capping ON capping.period = answered.period AND capping.revision = answered.revision
WHERE {% include 'pieces/no_problem.sql' %}
ORDER BY answered.period, answered._first
