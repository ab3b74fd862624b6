-- The estimated number of all (bounded) rows of a release, with its error bar: one row for each period, in order.
-- In: the release's table, with the catalogue's name before it where it is attached ('r.weekly_admissions'); a period,
-- by its first day; all without it.
CREATE OR REPLACE MACRO dph_total(release_name, period := NULL) AS TABLE
WITH
-- Named first, and as no release can be: a name of a part below would hide a release of the same name.
dph_cells AS (
    SELECT t.period, t.revision, t.estimate, t.unbiased_estimate FROM query_table(release_name) AS t
),
asked AS (
    SELECT lower(trim(split_part(release_name, '.', -1), '"')) AS release, CAST(period AS VARCHAR) AS period
),
latest AS (
    SELECT r.period, r.revision, r.noise_scale, r.noise_variance
    FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_releases')) AS r
    WHERE r.release = (SELECT asked.release FROM asked)
    QUALIFY r.revision = max(r.revision) OVER (PARTITION BY r.period)
),
chosen AS (
    SELECT latest.* FROM latest, asked WHERE coalesce(latest.period = asked.period, asked.period IS NULL)
),
problems AS (
    SELECT 'there is no period ' || asked.period || '; it has '
        || (SELECT min(latest.period) || ' to ' || max(latest.period) FROM latest) AS problem
    FROM asked
    WHERE asked.period IS NOT NULL AND NOT EXISTS (FROM chosen)
),
summed AS (
    SELECT
        chosen.period, chosen.revision,
        any_value(chosen.noise_scale) AS noise_scale, any_value(chosen.noise_variance) AS noise_variance,
        count(*) AS cells, sum(t.estimate) AS estimate, sum(t.unbiased_estimate) AS unbiased
    FROM dph_cells AS t JOIN chosen ON chosen.period = t.period AND chosen.revision = t.revision
    GROUP BY chosen.period, chosen.revision
),
barred AS (
    SELECT summed.*, (
        SELECT min(w.half_width)
        FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_half_widths')) AS w
        WHERE w.noise_scale = summed.noise_scale AND w.cells >= summed.cells
    ) AS half_width
    FROM summed
)
SELECT
    barred.period,
    barred.revision,
    barred.estimate,
    sqrt(barred.cells * barred.noise_variance) AS noise_error,
    CASE WHEN barred.half_width IS NOT NULL THEN greatest(0, barred.unbiased - barred.half_width) END AS ci_lower,
    CASE WHEN barred.half_width IS NOT NULL THEN greatest(0, barred.unbiased + barred.half_width) END AS ci_upper,
    CASE WHEN barred.half_width IS NULL THEN 'noise_only' ELSE 'unbiased' END AS basis,
    barred.cells
FROM (SELECT min(problems.problem) AS problem FROM problems) AS found LEFT JOIN barred ON true
WHERE CASE WHEN found.problem IS NULL THEN true ELSE error('dph_total: ' || found.problem) END
ORDER BY barred.period
