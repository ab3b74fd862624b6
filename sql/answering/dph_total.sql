-- The estimated number of all (bounded) rows of a release, with its error bar: one row for each period, in order.
-- In: the release's table, with the catalogue's name before it where it is attached ('r.weekly_admissions').
CREATE OR REPLACE MACRO dph_total(release_name) AS TABLE
WITH
chosen AS (
    SELECT
        r.period, max(r.revision) AS revision,
        arg_max(r.noise_scale, r.revision) AS noise_scale,
        arg_max(r.noise_variance, r.revision) AS noise_variance
    FROM query_table(
        release_name[:length(release_name) - length(split_part(release_name, '.', -1))] || 'dph_releases'
    ) AS r
    WHERE r.release = split_part(release_name, '.', -1)
    GROUP BY r.period
),
summed AS (
    SELECT
        t.period, t.revision, count(*) AS cells, sum(t.estimate) AS estimate, sum(t.unbiased_estimate) AS unbiased
    FROM query_table(release_name) AS t
    GROUP BY t.period, t.revision
),
barred AS (
    SELECT
        summed.*, chosen.noise_variance,
        (SELECT min(w.half_width) FROM query_table(
            release_name[:length(release_name) - length(split_part(release_name, '.', -1))] || 'dph_half_widths'
        ) AS w WHERE w.noise_scale = chosen.noise_scale AND w.cells >= summed.cells) AS half_width
    FROM summed JOIN chosen ON chosen.period = summed.period AND chosen.revision = summed.revision
)
SELECT
    barred.period,
    barred.revision,
    barred.estimate,
    sqrt(barred.cells * barred.noise_variance) AS noise_error,
    greatest(0, barred.unbiased - barred.half_width) AS ci_lower,
    greatest(0, barred.unbiased + barred.half_width) AS ci_upper,
    CASE WHEN barred.half_width IS NULL THEN 'noise_only' ELSE 'unbiased' END AS basis,
    barred.cells
FROM barred
ORDER BY barred.period
