-- Rates as they would be if each group had a standard population (directly standardised, as by age), with 95 % intervals: one row
-- for each combination of some axes, in declared order, for each period (its latest revision).
-- Each is the weighted sum of the rates along the axis `over`: the column `standard` of the population, divided by its sum, is the
-- weight. Rows of `other` are left out. A row has no rate where the population of one of its groups is 0 or missing; `note` says it.
-- `capped` tells how many rows the bound cut, from the quality table. Where they are told from noise, and `axes` is empty,
-- the table has the axis of `over`, and the box has no other, it tells by how much they move the answer, with an interval of
-- about 95 %. Without a quality table the bias is not known, as it says.
-- `chance` says whether the interval leaves chance out. `with_chance := true` adds it: counts then vary as Poisson's do around
-- their means, which is too little where persons have several rows.
-- In: the release's table; a list of axes or levels, which may be empty; the axis or level to standardise over; the name of a table
-- of yours as in dph_rate, with the columns of that axis and `standard`, too; per; a box and a period as in dph_box. A box without
-- some categories of `over` leaves them out of the standard.
{% set axes = 'list_append(coalesce(TRY_CAST(axes AS VARCHAR[]), []), CAST(over AS VARCHAR))' -%}
{% set over = 'over' -%}
{% set is_cut_told = true -%}
{% set cut_note = 'WHEN barred.reason IS NOT NULL THEN barred.reason ' -%}
{% set last_note = 'ELSE barred.added_up' -%}
{% set measured -%}
    WHEN barred.cut / barred.most IS NOT NULL THEN {{ moved(
        'rate',
        number('(0 - least(capping.cut_upper, greatest(0, barred.cut / barred.most)) * barred.most)', '+'),
        number('(
            0 - least(
                capping.cut_upper,
                CASE
                    WHEN barred.cut / barred.most + barred.cut_reach / barred.most > 0
                        THEN barred.cut / barred.most + barred.cut_reach / barred.most
                    ELSE barred.cut_reach / barred.most
                END
            ) * barred.most
        )', '+'),
        number('(
            0 - least(
                capping.cut_upper, greatest(0, barred.cut / barred.most - barred.cut_reach / barred.most)
            ) * barred.most
        )', '+')
    ) }}
{%- endset -%}
CREATE OR REPLACE MACRO {{ schema }}dph_standardised(
    release_name, axes, over, population_table, per := 100000, box := '{}', period := NULL,
    revision := NULL, with_chance := false
) AS TABLE
WITH dph_arguments AS (SELECT box AS box, period AS period, revision AS revision),
{% include 'pieces/matched.sql' %},
keyed_groups AS (
    SELECT
        m.*, m.parts[:n.groups] AS of_group, m.parts[n.groups + 1:] AS of_stratum
    FROM matched AS m, (SELECT count(DISTINCT c.name) AS groups FROM key_names AS c WHERE NOT c.is_over) AS n
),
weighted AS (
    SELECT
        k.period, k._first, k.of_group, a._answer.estimate AS estimate, a._answer.cells AS cells, a._answer.basis = 'known' AS is_known, a._unbiased AS unbiased,
        a._variance AS variance, a._is_linear AS is_nested, a._law.noise_scale, a._law.noise_variance,
        k.population, a._cut AS cut, k.reason, k.added_up,
        CASE
            WHEN k.reason IS NULL AND isfinite(k.standard)
                THEN per * k.standard / nullif(sum(k.standard) OVER (PARTITION BY k.period, k.of_group), 0) / k.population
        END AS weight
    FROM keyed_groups AS k
    JOIN answered AS a ON a.period = k.period AND a._first = k._first
),
-- The noise of cells is independent. That of nested estimates is not: standard deviations are added up there, and the widest law
-- is taken.
summed AS (
    SELECT
        w.period, min(w._first) AS _first, CAST(sum(w.cells) AS BIGINT) AS cells, sum(w.population) AS population,
        bool_or(w.is_nested) AS is_nested, any_value(w.noise_scale) AS noise_scale,
        any_value(w.noise_variance) AS noise_variance,
        min(w.reason) AS reason, min(w.added_up) AS added_up, bool_and(w.is_known) AS is_known,
        CASE WHEN bool_and(w.reason IS NULL) THEN {{ exact_sum('w.weight * w.estimate') }} END AS estimate,
        CASE WHEN bool_and(w.unbiased IS NOT NULL AND w.reason IS NULL) THEN {{ exact_sum('w.weight * w.unbiased') }} END AS unbiased,
        CASE
            WHEN NOT bool_and(w.variance IS NOT NULL AND w.reason IS NULL) THEN NULL
            WHEN bool_or(w.is_nested) THEN ({{ exact_sum('w.weight * sqrt(w.variance)') }}) ** 2
            ELSE {{ exact_sum('w.weight ** 2 * w.variance') }}
        END AS variance,
        max(w.weight) AS most,
        -- Rows cut, with the weights of the rates; their noise is independent.
        CASE WHEN bool_and(w.cut IS NOT NULL) THEN sum(w.weight * w.cut.cut) END AS cut,
        sqrt(sum((w.weight * w.cut.reach) ** 2)) AS cut_reach,
        fsum(w.weight ** 2 * (greatest(0, w.unbiased) + 1) ORDER BY w._first) AS chance_variance
    FROM weighted AS w
    GROUP BY w.period, w.of_group
),
barred AS (
    SELECT
        h.*, h.unbiased - h.half_width AS ci_lower, h.unbiased + h.half_width AS ci_upper, sqrt(h.variance) AS noise_error,
        CASE WHEN h.half_width IS NULL THEN 'noise_only' WHEN h.is_known AND h.half_width = 0 THEN 'known' ELSE 'linear' END AS basis, false AS has_sums
    FROM (
        SELECT d.*, {{ with_chance(asked, 'd.noise_half_width', 'd.chance_variance') }} AS half_width
        FROM (
            SELECT d.*, CASE WHEN d.noise_scale IS NOT NULL THEN sqrt(d.variance) * {{ deviations('d') }} END AS noise_half_width
            FROM (
                SELECT s.*, CASE WHEN s.is_nested THEN 1 ELSE s.variance / s.noise_variance / s.most ** 2 END AS draws
                FROM summed AS s
            ) AS d
            {{ widths_of('d', 'd.draws') }}
        ) AS d
    ) AS h
),
{% include 'pieces/capping.sql' %}
first_problems AS (
    FROM population_problems
    UNION ALL
    SELECT 'the axis ' || CAST(over AS VARCHAR) || ' cannot be one of the axes of the table, too'
    WHERE list_contains(TRY_CAST(axes AS VARCHAR[]), CAST(over AS VARCHAR))
    UNION ALL
    SELECT 'the axes are a list of names, as [''' || CAST(axes AS VARCHAR) || '''], not ' || CAST(axes AS VARCHAR)
    WHERE axes IS NOT NULL AND TRY_CAST(axes AS VARCHAR[]) IS NULL
    UNION ALL
    SELECT 'the standard must be at least 0 for ' || m.called
    FROM matched AS m
    WHERE m.lines > 0 AND NOT coalesce(m.standard >= 0 AND isfinite(m.standard), false)
    UNION ALL
    SELECT 'the standard has several numbers for ' || array_to_string(list_transform(k.of_stratum, lambda x: coalesce(x, 'null')), ', ')
        || '; it is one population'
    FROM keyed_groups AS k
    WHERE k.lines > 0
    GROUP BY k.of_stratum
    HAVING count(DISTINCT k.standard) > 1
    UNION ALL
    SELECT 'the standard is 0 for all groups of ' || CAST(over AS VARCHAR)
    FROM keyed_groups AS k
    HAVING max(k.standard) = 0
)
SELECT
    shown.* EXCLUDE (_first),
    barred.population,
    {% include 'pieces/answer.sql' %},
    {% include 'pieces/shifted.sql' %},
    {% include 'pieces/chance.sql' %},
    {{ days('shown.period', '(SELECT max(a._period_end) FROM answered AS a WHERE a.period = shown.period)') }}
FROM (SELECT min(f.problem) AS problem FROM first_problems AS f) AS found LEFT JOIN (
    (
        SELECT COLUMNS(
            lambda c: c = '_first' OR NOT starts_with(c, '_') AND c <> CAST(over AS VARCHAR)
                AND regexp_replace(c, '_(lower|upper|label)$', '') <> CAST(over AS VARCHAR)
        )
        FROM answered
    ) AS shown JOIN barred ON barred.period = shown.period AND barred._first = shown._first
) ON true
LEFT JOIN capping ON capping.period = shown.period AND capping.revision = shown.revision
WHERE {% include 'pieces/no_problem.sql' %}
ORDER BY shown.period, shown._first
