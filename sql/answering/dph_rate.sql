-- Counts by some axes for each `per` people of a population, with 95 % intervals: one row for each combination, in declared order,
-- for each period (its latest revision). The population is public and exact, so an interval is that of the count, divided.
-- Rows of `other` have no population and are left out.
-- In: the release's table; a list of axes or levels; the name of a table of yours with a column `population` and those of the
-- axes as in dph_marginal (for a binned axis its `_lower` and `_upper`, null for an open end), and `period` if it differs; per;
-- a box and a period as in dph_box.
CREATE OR REPLACE MACRO {schema}dph_rate(
    release_name, axes, population_table, per := 100000, box := '{}', period := NULL, revision := NULL
) AS TABLE
-- The table is read first, so no part of this query can hide it.
WITH people AS (SELECT to_json(p) AS line FROM query_table(population_table) AS p),
answered AS ({marginal}),
-- The columns of the axes, by which rows are matched.
key_columns AS (
    SELECT DISTINCT k.key_column, b.binned AND NOT b.calendar AS is_number
    FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_bins')) AS b, LATERAL (
        SELECT unnest(CASE WHEN b.binned THEN [b.axis || '_lower', b.axis || '_upper'] ELSE [b.axis] END) AS key_column
    ) AS k
    WHERE list_contains(CAST(axes AS VARCHAR[]), b.axis) AND b.grid IN (
        SELECT r.grid FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_releases')) AS r
        WHERE r.release = lower(trim(split_part(release_name, '.', -1), '"'))
    )
    UNION ALL
    SELECT 'period', false WHERE EXISTS (FROM people WHERE list_contains(json_keys(people.line), 'period'))
),
keyed AS (
    SELECT
        s.*, (
            SELECT list(
                CASE WHEN c.is_number
                    THEN CAST(TRY_CAST(json_extract_string(s.line, '$."' || c.key_column || '"') AS DOUBLE) AS VARCHAR)
                    ELSE json_extract_string(s.line, '$."' || c.key_column || '"')
                END
                ORDER BY c.key_column
            )
            FROM key_columns AS c
        ) AS parts
    FROM (
        SELECT to_json(a) AS line, a.period, a._first FROM answered AS a
        UNION ALL
        SELECT p.line, NULL, NULL FROM people AS p
    ) AS s
),
populations AS (
    SELECT
        k.parts, count(*) AS lines,
        any_value(TRY_CAST(json_extract_string(k.line, '$.population') AS DOUBLE)) AS population
    FROM keyed AS k
    WHERE k.period IS NULL
    GROUP BY k.parts
),
-- An axis in `other` has null in all its columns.
matched AS (
    SELECT k.period, k._first, k.parts, coalesce(p.lines, 0) AS lines, p.population
    FROM keyed AS k LEFT JOIN populations AS p ON p.parts = k.parts
    WHERE k.period IS NOT NULL AND NOT EXISTS (
        SELECT 1
        FROM key_columns AS c
        GROUP BY regexp_replace(c.key_column, CASE WHEN list_contains(CAST(axes AS VARCHAR[]), c.key_column) THEN '$^' ELSE '_(lower|upper)$' END, '')
        HAVING bool_and(json_extract_string(k.line, '$."' || c.key_column || '"') IS NULL)
    )
),
first_problems AS (
    SELECT 'the population needs the columns population' || (
        SELECT string_agg(', ' || c.key_column, '' ORDER BY c.key_column) FROM key_columns AS c
    ) AS problem
    FROM people
    WHERE NOT list_contains(json_keys(people.line), 'population')
        OR EXISTS (FROM key_columns AS c WHERE NOT list_contains(json_keys(people.line), c.key_column))
    UNION ALL
    SELECT 'there is no row of the population for ' || array_to_string(list_transform(m.parts, lambda x: coalesce(x, 'null')), ', ')
    FROM matched AS m
    WHERE m.lines = 0
    UNION ALL
    SELECT 'there are several rows of the population for '
        || array_to_string(list_transform(m.parts, lambda x: coalesce(x, 'null')), ', ') || '; add them up first'
    FROM matched AS m
    WHERE m.lines > 1
    UNION ALL
    SELECT 'the population must be above 0 for '
        || array_to_string(list_transform(m.parts, lambda x: coalesce(x, 'null')), ', ')
    FROM matched AS m
    WHERE m.lines = 1 AND NOT coalesce(m.population > 0 AND isfinite(m.population), false)
    UNION ALL
    SELECT '`per` is a number above 0, as 100000' WHERE NOT coalesce(TRY_CAST(per AS DOUBLE) > 0, false)
)
SELECT
    answered.* EXCLUDE (_first, _cells, _variance, _is_linear, _unbiased, _answer),
    m.population,
    answered._answer.estimate * per / m.population AS estimate,
    answered._answer.unbiased * per / m.population AS unbiased,
    answered._answer.noise_error * per / m.population AS noise_error,
    answered._answer.ci_lower * per / m.population AS ci_lower,
    answered._answer.ci_upper * per / m.population AS ci_upper,
    answered._answer.basis AS basis,
    answered._answer.cells AS cells,
    answered._answer.note AS note,
    answered._answer.reliability AS reliability
FROM (SELECT min(f.problem) AS problem FROM first_problems AS f) AS found LEFT JOIN (
    answered JOIN matched AS m ON m.period = answered.period AND m._first = answered._first
) ON true
WHERE {no_problem}
ORDER BY answered.period, answered._first
