-- The rows of dph_marginal in `answered`, and in `matched` the population of each row; `standard` is its column of that name.
-- Rows of `other` are left out. Finer rows of the population are added up: bins and levels inside those that are asked for, and
-- other columns, which `added_over` names where they differ. `reason` says why a row has no population.
-- The table is read first, so no part of this query can hide it; nor has this part a name that a table has, which would be read
-- as itself where there is no such table. In: axes, SQL for a list of names; over, the axis of a standard, if there is one.
{% macro end(name, which, unless) -%}
coalesce(CASE
    WHEN n.calendar THEN TRY_CAST({{ name }} AS DATE) - DATE '1970-01-01'
    ELSE TRY_CAST({{ name }} AS DOUBLE)
END, CASE WHEN {{ unless }} THEN CAST('{{ which }}inf' AS DOUBLE) END)
{%- endmacro -%}
dph_people AS MATERIALIZED (
    SELECT row_number() OVER () AS number, CAST(p AS MAP(VARCHAR, VARCHAR)) AS line FROM query_table(population_table) AS p
),
answered AS ({% include 'pieces/counted_by.sql' %}),
grids AS (
    SELECT DISTINCT r.grid, r.period, r.revision FROM {{ table('dph_releases') }} AS r WHERE r.release = {{ name_of(release) }}
),
-- The axes and levels that are asked for, with the column of the population that has their categories: for a level without one,
-- that of its axis. A binned axis has its two ends there, or one value inside of a bin.
key_names AS (
    SELECT
        DISTINCT b.grid, b.axis AS name, b.binned, b.calendar,
        b.axis IS NOT DISTINCT FROM CAST({{ over | default('NULL') }} AS VARCHAR) AS is_over,
        b.binned AND list_has_all(t.names, [b.axis || '_lower', b.axis || '_upper']) AS by_ends,
        CASE WHEN list_contains(t.names, b.axis) THEN b.axis ELSE b.level_of END AS source,
        by_ends OR list_contains(t.names, source) AS is_there
    FROM {{ table('dph_bins') }} AS b,
        (SELECT coalesce(any_value(map_keys(p.line)), []) AS names FROM dph_people AS p) AS t
    WHERE list_contains(CAST({{ axes }} AS VARCHAR[]), b.axis) AND b.grid IN (SELECT g.grid FROM grids AS g)
),
key_bins AS (
    SELECT
        DISTINCT n.grid, n.name, n.binned, n.calendar, b.bin_lower, b.bin_upper, b.first_value, b.last_value,
        CASE WHEN n.binned THEN b.bin_lower || ' to ' || b.bin_upper ELSE b.category END AS key,
        CASE
            WHEN NOT n.binned THEN b.category
            WHEN isinf(b.bin_lower) THEN b.below
            WHEN isinf(b.bin_upper) THEN b.above
            ELSE b.first || ' to ' || b.last
        END AS called
    FROM key_names AS n JOIN {{ table('dph_bins') }} AS b ON b.grid = n.grid AND b.axis = n.name
),
-- Each row of the population with the key of each name.
line_keys AS (
    SELECT DISTINCT n.grid, p.number, n.name, n.is_over, b.category AS key
    FROM key_names AS n
    JOIN {{ table('dph_bins') }} AS s ON s.grid = n.grid AND s.axis = n.source
    JOIN {{ table('dph_bins') }} AS b ON b.grid = n.grid AND b.axis = n.name AND b.position = s.position
    JOIN dph_people AS p ON p.line[n.source] = s.category
    WHERE NOT n.binned AND b.category IS NOT NULL
    UNION ALL
    SELECT e.grid, e.number, e.name, e.is_over, arg_max(k.key, k.bin_lower) AS key
    FROM (
        SELECT
            n.grid, n.name, n.is_over, n.by_ends, p.number,
            nullif(trim(p.line[CASE WHEN n.by_ends THEN n.name || '_lower' ELSE n.name END]), '') AS low,
            nullif(trim(p.line[CASE WHEN n.by_ends THEN n.name || '_upper' ELSE n.name END]), '') AS high,
            {{ end('low', '-', 'low IS NULL AND high IS NOT NULL') }} AS lower_end,
            {{ end('high', '', 'high IS NULL AND low IS NOT NULL') }} AS upper_end
        FROM dph_people AS p, key_names AS n
        WHERE n.binned
    ) AS e
    JOIN key_bins AS k
        ON k.grid = e.grid AND k.name = e.name AND k.bin_lower <= e.lower_end AND k.bin_upper >= e.upper_end AND CASE
            WHEN e.by_ends THEN true
            -- A value belongs to the bin whose whole numbers have it, else to the bin that it begins.
            WHEN k.first_value > k.bin_lower OR k.last_value < k.bin_upper
                THEN e.lower_end BETWEEN k.first_value AND k.last_value
            ELSE e.lower_end < k.bin_upper
        END
    GROUP BY e.grid, e.number, e.name, e.is_over
),
keyed_lines AS (
    SELECT
        g.grid, p.number, any_value(p.line) AS line,
        coalesce(list(k.key ORDER BY k.is_over, k.name) FILTER (k.key IS NOT NULL), []) AS parts
    FROM (SELECT DISTINCT grids.grid FROM grids) AS g
    CROSS JOIN dph_people AS p
    LEFT JOIN line_keys AS k ON k.grid = g.grid AND k.number = p.number
    GROUP BY g.grid, p.number
    HAVING len(parts) = (SELECT count(*) FROM key_names AS n WHERE n.grid = g.grid)
),
-- The columns in which rows that are added up differ.
differing AS (
    SELECT d.grid, d.parts, d.period, string_agg(d.name, ', ' ORDER BY d.name) AS names
    FROM (
        SELECT e.grid, e.parts, e.period, e.entry.key AS name
        FROM (SELECT k.grid, k.parts, k.line['period'] AS period, unnest(map_entries(k.line)) AS entry FROM keyed_lines AS k) AS e
        WHERE e.entry.key NOT IN ('population', 'standard')
        GROUP BY e.grid, e.parts, e.period, e.entry.key
        HAVING count(DISTINCT coalesce('=' || e.entry.value, '')) > 1
    ) AS d
    GROUP BY d.grid, d.parts, d.period
),
populations AS (
    SELECT
        k.grid, k.parts, k.line['period'] AS period, count(*) AS lines,
        count(DISTINCT map_entries(k.line).list_filter(lambda e: e.key NOT IN ('population', 'standard'))) AS distinct_lines,
        fsum(TRY_CAST(k.line['population'] AS DOUBLE) ORDER BY k.number) AS population,
        bool_and(coalesce(TRY_CAST(k.line['population'] AS DOUBLE) BETWEEN 0 AND 1e15, false)) AS are_numbers,
        fsum(TRY_CAST(k.line['standard'] AS DOUBLE) ORDER BY k.number) AS standard
    FROM keyed_lines AS k
    GROUP BY k.grid, k.parts, k.line['period']
),
-- An axis in `other` has null in all its columns.
matched AS (
    SELECT
        r.period, r._first, r.parts, r.called, coalesce(p.lines, 0) AS lines, p.distinct_lines, p.population, p.standard,
        'people are added up over ' || d.names AS added_up,
        CASE
            WHEN p.lines IS NULL THEN 'the population has no row for ' || r.called
            WHEN NOT p.are_numbers THEN 'the population is no number of at least 0 for ' || r.called
            WHEN p.population = 0 THEN 'the population is 0 for ' || r.called
        END AS reason
    FROM (
        SELECT
            a.period, a._first, g.grid, list(k.key ORDER BY n.is_over, n.name) FILTER (n.name IS NOT NULL) AS keys,
            coalesce(keys, []) AS parts, coalesce(string_agg(k.called, ', ' ORDER BY n.is_over, n.name), 'all cells') AS called
        FROM (SELECT CAST(answered AS MAP(VARCHAR, VARCHAR)) AS line, answered.period, answered.revision, answered._first FROM answered) AS a
        JOIN grids AS g ON g.period = a.period AND g.revision = a.revision
        LEFT JOIN key_names AS n ON n.grid = g.grid
        LEFT JOIN key_bins AS k ON k.grid = n.grid AND k.name = n.name AND CASE
            WHEN NOT n.binned THEN k.key = a.line[n.name]
            ELSE k.bin_lower = {{ end("a.line[n.name || '_lower']", '-', "a.line[n.name || '_lower'] IS NULL AND a.line[n.name || '_upper'] IS NOT NULL") }}
                AND k.bin_upper = {{ end("a.line[n.name || '_upper']", '', "a.line[n.name || '_upper'] IS NULL AND a.line[n.name || '_lower'] IS NOT NULL") }}
        END
        GROUP BY a.period, a._first, g.grid
    ) AS r
    LEFT JOIN populations AS p ON p.grid = r.grid AND p.parts = r.parts AND coalesce(p.period, r.period) = r.period
    LEFT JOIN differing AS d ON d.grid = p.grid AND d.parts = p.parts AND d.period IS NOT DISTINCT FROM p.period
    WHERE NOT list_contains([x IS NULL FOR x IN r.parts], true)
),
population_problems AS (
    SELECT
        'the population has no column ' || string_agg(c.called, ', ' ORDER BY c.place, c.name)
            || '. Wanted header: ' || (
                SELECT string_agg(w.header, ',' ORDER BY w.place, w.name) FROM (
                    SELECT DISTINCT 0 AS place, n.name, CASE WHEN n.binned THEN n.name || '_lower,' || n.name || '_upper' ELSE n.name END AS header
                    FROM key_names AS n
                    UNION ALL
                    SELECT 1, 'population', 'population'
                    {% if over is defined %}UNION ALL SELECT 2, 'standard', 'standard'{% endif %}
                ) AS w
            ) || ' (a column more makes finer rows, which are added up); found: '
            || (SELECT left(array_to_string(map_keys(min_by(p.line, p.number)), ','), 200) FROM dph_people AS p) AS problem
    FROM (
        SELECT DISTINCT 0 AS place, n.name, CASE WHEN n.binned THEN n.name || '_lower with ' || n.name || '_upper' ELSE n.name END AS called
        FROM key_names AS n
        WHERE NOT n.is_there
        UNION ALL
        SELECT w.place, w.name, w.name
        FROM (VALUES (1, 'population'){% if over is defined %}, (2, 'standard'){% endif %}) AS w(place, name)
        WHERE NOT EXISTS (FROM dph_people AS p WHERE list_contains(map_keys(p.line), w.name))
    ) AS c
    HAVING count(*) > 0 AND EXISTS (FROM dph_people)
    UNION ALL
    SELECT 'the population has no rows' WHERE NOT EXISTS (FROM dph_people)
    UNION ALL
    SELECT 'the population repeats a row for ' || m.called || '; finer rows are added up, and differ in another column'
    FROM matched AS m
    WHERE m.lines > m.distinct_lines
    UNION ALL
    SELECT '`per` is a number above 0, as 100000' WHERE NOT coalesce(TRY_CAST(per AS DOUBLE) > 0, false)
)
