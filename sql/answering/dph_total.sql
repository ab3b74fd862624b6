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
    SELECT r.period, r.revision, r.grid, r.noise_scale, r.noise_variance
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
-- For linear estimates: the nested nodes by which two cells share noise; the others have none of these.
levels AS (
    SELECT chosen.period, chosen.revision, chosen.grid, v.level, v.axis, v.width, v.coefficient
    FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_covariance')) AS v
    JOIN chosen ON chosen.period = v.period AND chosen.revision = v.revision
    WHERE v.release = (SELECT asked.release FROM asked)
),
-- Per axis and width, the sum over the nodes of (positions in the node)²: whole nodes, and what is left.
squares AS (
    SELECT DISTINCT
        levels.grid, levels.axis, levels.width,
        CAST(
            b.size // levels.width * levels.width * levels.width + (b.size % levels.width) * (b.size % levels.width)
            AS DOUBLE
        ) AS squares
    FROM levels
    JOIN query_table(regexp_replace(release_name, '[^.]*$', 'dph_bins')) AS b
        ON b.grid = levels.grid AND b.axis = levels.axis AND b.position = 0
),
variances AS (
    SELECT nested.period, nested.revision, fsum(nested.coefficient * nested.squares) AS linear_variance
    FROM (
        SELECT
            levels.period, levels.revision, levels.level,
            any_value(levels.coefficient) AS coefficient, product(squares.squares) AS squares
        FROM levels JOIN squares
            ON squares.grid = levels.grid AND squares.axis = levels.axis AND squares.width = levels.width
        GROUP BY levels.period, levels.revision, levels.level
    ) AS nested
    GROUP BY nested.period, nested.revision
),
summed AS (
    SELECT
        chosen.period, chosen.revision,
        any_value(chosen.noise_scale) AS noise_scale, any_value(chosen.noise_variance) AS noise_variance,
        any_value(variances.linear_variance) AS linear_variance,
        count(*) AS cells, sum(t.estimate) AS estimate, sum(t.unbiased_estimate) AS unbiased
    FROM dph_cells AS t JOIN chosen ON chosen.period = t.period AND chosen.revision = t.revision
    LEFT JOIN variances ON variances.period = chosen.period AND variances.revision = chosen.revision
    GROUP BY chosen.period, chosen.revision
),
barred AS (
    SELECT summed.*, CASE
        WHEN summed.linear_variance IS NULL THEN (
            SELECT min(w.half_width)
            FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_half_widths')) AS w
            WHERE w.noise_scale = summed.noise_scale AND w.cells >= summed.cells
        )
        -- The last entry that the variance reaches; a rounding error must not decide whether it does.
        ELSE sqrt(summed.linear_variance) * (
            SELECT max_by(w.deviations, w.draws)
            FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_linear_widths')) AS w
            WHERE w.noise_scale = summed.noise_scale
                AND w.draws <= greatest(1, summed.linear_variance / summed.noise_variance * (1 + 1e-9))
        )
    END AS half_width
    FROM summed
)
SELECT
    barred.period,
    barred.revision,
    barred.estimate,
    sqrt(coalesce(barred.linear_variance, barred.cells * barred.noise_variance)) AS noise_error,
    CASE WHEN barred.half_width IS NOT NULL THEN greatest(0, barred.unbiased - barred.half_width) END AS ci_lower,
    CASE WHEN barred.half_width IS NOT NULL THEN greatest(0, barred.unbiased + barred.half_width) END AS ci_upper,
    CASE
        WHEN barred.half_width IS NULL THEN 'noise_only'
        WHEN barred.linear_variance IS NULL THEN 'unbiased'
        ELSE 'linear'
    END AS basis,
    barred.cells
FROM (SELECT min(problems.problem) AS problem FROM problems) AS found LEFT JOIN barred ON true
WHERE CASE WHEN found.problem IS NULL THEN true ELSE error('dph_total: ' || found.problem) END
ORDER BY barred.period
