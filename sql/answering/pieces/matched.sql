-- The rows of dph_marginal in `answered`, and in `matched` the population of each row; `standard` is its column of that name.
-- Rows of `other` are left out.
-- The table is read first, so no part of this query can hide it; nor has this part a name that a table has, which would be read
-- as itself where there is no such table.
dph_people AS (SELECT CAST(p AS MAP(VARCHAR, VARCHAR)) AS line FROM query_table(population_table) AS p),
answered AS ({% include 'pieces/counted_by.sql' %}),
-- The columns of the axes, by which rows are matched.
key_columns AS (
    SELECT
        DISTINCT k.key_column, b.binned AND NOT b.calendar AS is_number,
        b.axis IS NOT DISTINCT FROM CAST({{ over | default('NULL') }} AS VARCHAR) AS is_over
    FROM {{ table('dph_bins') }} AS b, LATERAL (
        SELECT unnest(CASE WHEN b.binned THEN [b.axis || '_lower', b.axis || '_upper'] ELSE [b.axis] END) AS key_column
    ) AS k
    WHERE list_contains(CAST({{ axes }} AS VARCHAR[]), b.axis) AND b.grid IN (
        SELECT r.grid FROM {{ table('dph_releases') }} AS r
        WHERE r.release = {{ name_of(release) }}
    )
    UNION ALL
    SELECT 'period', false, false WHERE EXISTS (FROM dph_people WHERE list_contains(map_keys(dph_people.line), 'period'))
),
keyed AS (
    SELECT
        s.*, coalesce((
            SELECT list(
                CASE WHEN c.is_number
                    THEN CAST(TRY_CAST(s.line[c.key_column] AS DOUBLE) AS VARCHAR)
                    ELSE s.line[c.key_column]
                END
                ORDER BY c.is_over, c.key_column
            )
            FROM key_columns AS c
        ), []) AS parts
    FROM (
        SELECT CAST(a AS MAP(VARCHAR, VARCHAR)) AS line, a.period, a._first FROM answered AS a
        UNION ALL
        SELECT p.line, NULL, NULL FROM dph_people AS p
    ) AS s
),
populations AS (
    SELECT
        k.parts, count(*) AS lines,
        any_value(TRY_CAST(k.line['population'] AS DOUBLE)) AS population,
        any_value(TRY_CAST(k.line['standard'] AS DOUBLE)) AS standard
    FROM keyed AS k
    WHERE k.period IS NULL
    GROUP BY k.parts
),
-- An axis in `other` has null in all its columns.
matched AS (
    SELECT
        k.period, k._first, k.parts, coalesce(p.lines, 0) AS lines, p.population, p.standard,
        CASE WHEN len(k.parts) = 0 THEN 'all cells'
            ELSE array_to_string(list_transform(k.parts, lambda x: coalesce(x, 'null')), ', ')
        END AS called
    FROM keyed AS k LEFT JOIN populations AS p ON p.parts = k.parts
    WHERE k.period IS NOT NULL AND NOT EXISTS (
        SELECT 1
        FROM key_columns AS c
        GROUP BY regexp_replace(c.key_column, CASE WHEN list_contains(CAST({{ axes }} AS VARCHAR[]), c.key_column) THEN '$^' ELSE '_(lower|upper)$' END, '')
        HAVING bool_and(k.line[c.key_column] IS NULL)
    )
),
population_problems AS (
    SELECT 'the population needs the columns population' || (
        SELECT string_agg(', ' || c.key_column, '' ORDER BY c.key_column) FROM key_columns AS c
    ) AS problem
    FROM dph_people
    WHERE NOT list_contains(map_keys(dph_people.line), 'population')
        OR EXISTS (FROM key_columns AS c WHERE NOT list_contains(map_keys(dph_people.line), c.key_column))
    UNION ALL
    SELECT 'there is no row of the population for ' || m.called
    FROM matched AS m
    WHERE m.lines = 0
    UNION ALL
    SELECT 'there are several rows of the population for ' || m.called || '; add them up first'
    FROM matched AS m
    WHERE m.lines > 1
    UNION ALL
    SELECT 'the population must be above 0 for ' || m.called
    FROM matched AS m
    WHERE m.lines = 1 AND NOT coalesce(m.population > 0 AND isfinite(m.population), false)
    UNION ALL
    SELECT '`per` is a number above 0, as 100000' WHERE NOT coalesce(TRY_CAST(per AS DOUBLE) > 0, false)
)
