-- The estimated count in a box of cells, with its error bar: one row for each period (its latest revision), in order.
-- In: the release's table, with the catalogue's name before it where it is attached ('r.weekly_admissions'); the box as
-- a struct or as JSON text: per axis [low, high) in axis units with null for an open end, or a category, null for
-- `other`, or a list of categories. An axis that is left out is summed over.
CREATE OR REPLACE MACRO dph_box(release_name, box := '{}') AS TABLE
WITH
named AS (
    SELECT
        split_part(release_name, '.', -1) AS release,
        CAST(box AS JSON) AS box
),
chosen AS (
    SELECT
        r.period, max(r.revision) AS revision,
        arg_max(r.grid, r.revision) AS grid,
        arg_max(r.noise_scale, r.revision) AS noise_scale,
        arg_max(r.noise_variance, r.revision) AS noise_variance
    FROM query_table(
        release_name[:length(release_name) - length(split_part(release_name, '.', -1))] || 'dph_releases'
    ) AS r
    WHERE r.release = split_part(release_name, '.', -1)
    GROUP BY r.period
),
bins AS (
    SELECT b.*, json_extract((SELECT named.box FROM named), '$."' || b.axis || '"') AS wanted
    FROM query_table(
        release_name[:length(release_name) - length(split_part(release_name, '.', -1))] || 'dph_bins'
    ) AS b
    WHERE b.grid IN (SELECT chosen.grid FROM chosen)
),
axes AS (
    SELECT
        bins.grid, bins.axis, any_value(bins.binned) AS binned, any_value(bins.wanted) AS wanted,
        TRY_CAST(json_extract(any_value(bins.wanted), '$[0]') AS DOUBLE) AS low,
        TRY_CAST(json_extract(any_value(bins.wanted), '$[1]') AS DOUBLE) AS high,
        list(bins.category ORDER BY bins.position) AS categories,
        list_distinct(list(bins.bin_lower) || list(bins.bin_upper)) AS edges
    FROM bins
    WHERE bins.wanted IS NOT NULL AND json_type(bins.wanted) IS NOT NULL
    GROUP BY bins.grid, bins.axis
),
problems AS (
    SELECT 'there is no axis ' || unknown.axis || '; the axes are '
        || (SELECT string_agg(DISTINCT bins.axis, ', ' ORDER BY bins.axis) FROM bins) AS problem
    FROM (SELECT unnest(json_keys((SELECT named.box FROM named))) AS axis) AS unknown
    WHERE unknown.axis NOT IN (SELECT bins.axis FROM bins)
    UNION ALL
    SELECT 'axis ' || axes.axis || ' takes a range as [low, high], half-open, low below high, null for an open end'
    FROM axes
    WHERE axes.binned AND (
        json_type(axes.wanted) <> 'ARRAY' OR json_array_length(axes.wanted) <> 2
        OR (axes.low IS NULL AND json_type(axes.wanted, '$[0]') <> 'NULL')
        OR (axes.high IS NULL AND json_type(axes.wanted, '$[1]') <> 'NULL')
        OR axes.low >= axes.high
    )
    UNION ALL
    SELECT 'axis ' || axes.axis || ': ' || cut.bound || ' cuts a bin; its edges are '
        || array_to_string(list_sort(list_filter(axes.edges, lambda edge: isfinite(edge))), ', ')
    FROM axes, (SELECT unnest([axes.low, axes.high]) AS bound) AS cut
    WHERE axes.binned AND cut.bound IS NOT NULL AND NOT list_contains(axes.edges, cut.bound)
    UNION ALL
    SELECT 'axis ' || axes.axis || ' has no category ' || named_category.category || '; it has '
        || array_to_string(list_filter(axes.categories, lambda category: category IS NOT NULL), ', ')
    FROM axes, (
        SELECT unnest(
            CASE json_type(axes.wanted)
                WHEN 'ARRAY' THEN CAST(axes.wanted AS VARCHAR[])
                WHEN 'NULL' THEN CAST([] AS VARCHAR[])
                ELSE [axes.wanted ->> '$']
            END
        ) AS category
    ) AS named_category
    WHERE NOT axes.binned AND named_category.category IS NOT NULL
        AND NOT list_contains(axes.categories, named_category.category)
),
allowed AS (
    SELECT
        bins.grid, any_value(bins.stride) AS stride, any_value(bins.size) AS size,
        list(bins.position) AS positions, min(bins.position) AS first, max(bins.position) AS last
    FROM bins JOIN axes ON axes.grid = bins.grid AND axes.axis = bins.axis
    WHERE CASE
        WHEN axes.binned THEN bins.bin_lower >= coalesce(axes.low, '-inf') AND bins.bin_upper <= coalesce(axes.high, 'inf')
        WHEN json_type(axes.wanted) = 'NULL' THEN bins.category IS NULL
        WHEN json_type(axes.wanted) = 'ARRAY' THEN list_contains(CAST(axes.wanted AS VARCHAR[]), bins.category)
            OR (bins.category IS NULL AND len(list_filter(CAST(axes.wanted AS VARCHAR[]), lambda c: c IS NULL)) > 0)
        ELSE bins.category = axes.wanted ->> '$'
    END
    GROUP BY bins.grid, bins.axis
),
conditions AS (
    SELECT
        chosen.*,
        (SELECT count(*) FROM axes WHERE axes.grid = chosen.grid) AS constrained,
        coalesce(
            (SELECT list({'stride': allowed.stride, 'size': allowed.size, 'first': allowed.first, 'last': allowed.last,
                'dense': allowed.last - allowed.first + 1 = len(allowed.positions), 'positions': allowed.positions})
             FROM allowed WHERE allowed.grid = chosen.grid),
            []
        ) AS allowed
    FROM chosen
),
summed AS (
    SELECT
        c.period, c.revision,
        any_value(c.noise_scale) AS noise_scale, any_value(c.noise_variance) AS noise_variance,
        count(t.cell_number) AS cells,
        coalesce(sum(t.estimate), 0) AS estimate, coalesce(sum(t.unbiased_estimate), 0) AS unbiased
    FROM conditions AS c
    LEFT JOIN query_table(release_name) AS t
        ON t.period = c.period AND t.revision = c.revision AND len(c.allowed) = c.constrained
        AND len(list_filter(c.allowed, lambda k: NOT (
            (t.cell_number // k.stride) % k.size BETWEEN k.first AND k.last
            AND (k.dense OR list_contains(k.positions, (t.cell_number // k.stride) % k.size))
        ))) = 0
    GROUP BY c.period, c.revision
),
barred AS (
    SELECT
        summed.*,
        (SELECT min(w.half_width) FROM query_table(
            release_name[:length(release_name) - length(split_part(release_name, '.', -1))] || 'dph_half_widths'
        ) AS w WHERE w.noise_scale = summed.noise_scale AND w.cells >= summed.cells) AS half_width
    FROM summed
)
SELECT
    CASE
        WHEN (SELECT count(*) FROM problems) > 0
            THEN error('dph_box: ' || (SELECT min(problems.problem) FROM problems))
        ELSE barred.period
    END AS period,
    barred.revision,
    barred.estimate,
    sqrt(barred.cells * barred.noise_variance) AS noise_error,
    greatest(0, barred.unbiased - barred.half_width) AS ci_lower,
    greatest(0, barred.unbiased + barred.half_width) AS ci_upper,
    CASE WHEN barred.half_width IS NULL THEN 'noise_only' ELSE 'unbiased' END AS basis,
    barred.cells
FROM barred
ORDER BY barred.period
