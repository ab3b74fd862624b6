-- The first part of every macro: the cells of the release, and the latest revision of each period in the question.
-- In: release_name; the columns of a cell; a list of periods by their first days, null for all.
WITH
-- No release can have the name of this table, so the name of a part of this query cannot hide it.
dph_cells AS (
    SELECT {columns} FROM query_table(
        regexp_replace(release_name, '[^.]*$', 'dph_cells_' || lower(trim(split_part(release_name, '.', -1), '"')))
    ) AS t
),
asked AS (
    SELECT
        lower(trim(split_part(release_name, '.', -1), '"')) AS release,
        {periods} AS periods
),
-- The view of the release is named first, without reading it: DuckDB answers a wrong name with the nearest right one.
latest AS (
    SELECT
        r.period, r.revision, r.grid, r.cells, r.noise_scale, r.noise_variance,
        r.alpha, r.beta, r.gamma, r.delta, r.step,
        r.noise_scale IS NOT NULL OR r.step IS NOT NULL AS has_bars,
        coalesce(TRY_CAST(split_part(r.noise_scale, '/', 2) AS DOUBLE), 1)
            / TRY_CAST(split_part(r.noise_scale, '/', 1) AS DOUBLE) AS decay
    FROM
        (SELECT count(*) FROM (FROM query_table(release_name) LIMIT 0)) AS dph_named,
        query_table(regexp_replace(release_name, '[^.]*$', 'dph_releases')) AS r
    WHERE r.release = (SELECT asked.release FROM asked)
    QUALIFY r.revision = max(r.revision) OVER (PARTITION BY r.period)
),
chosen AS (
    SELECT latest.* FROM latest, asked WHERE coalesce(list_contains(asked.periods, latest.period), true)
),
period_problems AS (
    SELECT 'there is no period ' || unknown.period || '; it has '
        || (SELECT min(latest.period) || ' to ' || max(latest.period) FROM latest) AS problem
    FROM (SELECT unnest(asked.periods) AS period FROM asked) AS unknown
    WHERE unknown.period NOT IN (SELECT latest.period FROM latest)
)
