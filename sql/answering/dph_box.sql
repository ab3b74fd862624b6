-- The estimated count in a box of cells, with its error bar: one row for each period (its latest revision), in order.
-- In: the release's table, with the catalogue's name before it where it is attached ('r.weekly_admissions'); the box as
-- a struct or as JSON text: per axis [low, high) in axis units (days as '2026-03-02') with null for an open end, or a
-- category, null for `other`, or a list of categories; a level of an axis's hierarchy likewise. An axis that is left out
-- is summed over. A period by its first day; all without it.
-- Refuses in the last WHERE: a query that reads one column only would never compute an error in another.
CREATE OR REPLACE MACRO dph_box(release_name, box := '{}', period := NULL) AS TABLE
WITH
-- Named first, and as no release can be: a name of a part below would hide a release of the same name.
dph_cells AS (
    SELECT t.period, t.revision, t.cell_number, t.estimate, t.unbiased_estimate FROM query_table(release_name) AS t
),
asked AS (
    SELECT
        lower(trim(split_part(release_name, '.', -1), '"')) AS release,
        CAST(box AS JSON) AS box,
        CAST(period AS VARCHAR) AS period
),
latest AS (
    SELECT r.period, r.revision, r.grid, r.cells, r.noise_scale, r.noise_variance
    FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_releases')) AS r
    WHERE r.release = (SELECT asked.release FROM asked)
    QUALIFY r.revision = max(r.revision) OVER (PARTITION BY r.period)
),
chosen AS (
    SELECT latest.* FROM latest, asked WHERE coalesce(latest.period = asked.period, asked.period IS NULL)
),
bins AS (
    SELECT
        b.*,
        CASE WHEN b.calendar
            THEN strftime(DATE '1970-01-01' + TRY_CAST(b.bin_lower AS INTEGER), '%Y-%m-%d')
            ELSE CAST(b.bin_lower AS VARCHAR)
        END AS lower_end,
        CASE WHEN b.calendar
            THEN strftime(DATE '1970-01-01' + TRY_CAST(b.bin_upper AS INTEGER), '%Y-%m-%d')
            ELSE CAST(b.bin_upper AS VARCHAR)
        END AS upper_end
    FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_bins')) AS b
    WHERE b.grid IN (SELECT chosen.grid FROM chosen)
),
axes AS (
    SELECT
        a.*,
        CASE WHEN a.calendar
            THEN date_diff('day', DATE '1970-01-01', TRY_CAST(a.wanted ->> '$[0]' AS DATE))
            ELSE TRY_CAST(json_extract(a.wanted, '$[0]') AS DOUBLE)
        END AS low,
        CASE WHEN a.calendar
            THEN date_diff('day', DATE '1970-01-01', TRY_CAST(a.wanted ->> '$[1]' AS DATE))
            ELSE TRY_CAST(json_extract(a.wanted, '$[1]') AS DOUBLE)
        END AS high
    FROM (
        SELECT d.*, json_extract(asked.box, '$."' || d.axis || '"') AS wanted
        FROM (
            SELECT DISTINCT bins.grid, bins.axis, bins.level_of, bins.stride, bins.size, bins.binned, bins.calendar
            FROM bins
        ) AS d, asked
    ) AS a
),
wishes AS (
    SELECT DISTINCT axes.grid, axes.axis, unnest(
        CASE json_type(axes.wanted)
            WHEN 'ARRAY' THEN CAST(axes.wanted AS VARCHAR[])
            WHEN 'NULL' THEN CAST([NULL] AS VARCHAR[])
            ELSE [axes.wanted ->> '$']
        END
    ) AS category
    FROM axes
    WHERE axes.wanted IS NOT NULL AND NOT axes.binned
),
ends AS (
    SELECT
        axes.grid, axes.axis,
        unnest([axes.low, axes.high]) AS bound,
        unnest([axes.wanted ->> '$[0]', axes.wanted ->> '$[1]']) AS written
    FROM axes
    WHERE axes.wanted IS NOT NULL AND axes.binned
),
-- Of every axis or level that is asked, which positions are wanted.
asked_positions AS (
    SELECT bins.grid, bins.level_of, bins.stride, bins.size, bins.position, coalesce(
        CASE
            WHEN axes.binned THEN bins.bin_lower >= coalesce(axes.low, '-inf')
                AND bins.bin_upper <= coalesce(axes.high, 'inf')
            ELSE wishes.axis IS NOT NULL
        END,
        false
    ) AS is_wanted
    FROM axes JOIN bins ON bins.grid = axes.grid AND bins.axis = axes.axis
    LEFT JOIN wishes
        ON wishes.grid = bins.grid AND wishes.axis = bins.axis
            AND wishes.category IS NOT DISTINCT FROM bins.category
    WHERE axes.wanted IS NOT NULL
),
-- Of every axis, the positions that it and its levels all want.
positions AS (
    SELECT p.grid, p.level_of AS axis, p.stride, p.size, p.position, bool_and(p.is_wanted) AS is_wanted
    FROM asked_positions AS p
    GROUP BY p.grid, p.level_of, p.stride, p.size, p.position
),
-- Per axis that is asked, from where to where positions are wanted, and where some between are not, a bit for each.
allowed AS (
    SELECT spans.* EXCLUDE (bits), CASE WHEN spans.wanted < spans.final - spans.first + 1 THEN spans.bits END AS bits
    FROM (
        SELECT
            positions.grid, positions.axis, any_value(positions.stride) AS stride, any_value(positions.size) AS size,
            min(positions.position) FILTER (positions.is_wanted) AS first,
            max(positions.position) FILTER (positions.is_wanted) AS final,
            count(*) FILTER (positions.is_wanted) AS wanted,
            CAST(
                string_agg(CASE WHEN positions.is_wanted THEN '1' ELSE '0' END, '' ORDER BY positions.position) AS BIT
            ) AS bits
        FROM positions
        GROUP BY positions.grid, positions.axis
    ) AS spans
),
problems AS (
    SELECT 'there is no period ' || asked.period || '; it has '
        || (SELECT min(latest.period) || ' to ' || max(latest.period) FROM latest) AS problem
    FROM asked
    WHERE asked.period IS NOT NULL AND NOT EXISTS (FROM chosen)
    UNION ALL
    SELECT 'the box is a struct or a JSON object, with each axis once'
    FROM asked
    WHERE json_type(asked.box) <> 'OBJECT' OR len(json_keys(asked.box)) <> len(list_distinct(json_keys(asked.box)))
    UNION ALL
    SELECT 'there is no axis ' || unknown.axis || ' in period ' || chosen.period || '; the axes are '
        || (
            SELECT string_agg(axes.axis, ', ' ORDER BY axes.stride DESC, axes.axis <> axes.level_of, axes.axis)
            FROM axes WHERE axes.grid = chosen.grid
        )
    FROM chosen, (SELECT unnest(json_keys(asked.box)) AS axis FROM asked) AS unknown
    WHERE NOT EXISTS (FROM axes WHERE axes.grid = chosen.grid AND axes.axis = unknown.axis)
    UNION ALL
    SELECT 'axis ' || axes.axis || ' takes a range as [low, high]' || if(axes.calendar, ' of days as 2026-03-02', '')
        || ', half-open, low below high, null for an open end'
    FROM axes
    WHERE axes.binned AND (
        json_type(axes.wanted) <> 'ARRAY' OR json_array_length(axes.wanted) <> 2
        OR (axes.low IS NULL AND json_type(axes.wanted, '$[0]') <> 'NULL')
        OR (axes.high IS NULL AND json_type(axes.wanted, '$[1]') <> 'NULL')
        OR axes.low >= axes.high OR isnan(axes.high)
    )
    UNION ALL
    SELECT 'axis ' || ends.axis || ': ' || any_value(ends.written) || ' is not an edge; the nearest are ' || concat_ws(
        ' and ',
        max_by(bins.lower_end, bins.bin_lower) FILTER (isfinite(bins.bin_lower) AND bins.bin_lower < ends.bound),
        min_by(bins.upper_end, bins.bin_upper) FILTER (isfinite(bins.bin_upper) AND bins.bin_upper > ends.bound)
    )
    FROM ends JOIN bins ON bins.grid = ends.grid AND bins.axis = ends.axis
    WHERE isfinite(ends.bound)
    GROUP BY ends.grid, ends.axis, ends.bound
    HAVING NOT bool_or(ends.bound IN (bins.bin_lower, bins.bin_upper))
    UNION ALL
    SELECT 'axis ' || unknown.axis || ' has no category ' || coalesce(any_value(unknown.category), 'for other')
        || '; it has ' || array_to_string(
            list(
                bins.category
                ORDER BY jaro_winkler_similarity(bins.category, unknown.category) DESC, bins.position
            ) FILTER (bins.category IS NOT NULL)[:20],
            ', '
        )
    FROM (
        SELECT DISTINCT ON (wishes.grid, wishes.axis) wishes.grid, wishes.axis, wishes.category
        FROM wishes ANTI JOIN bins
            ON bins.grid = wishes.grid AND bins.axis = wishes.axis
                AND bins.category IS NOT DISTINCT FROM wishes.category
        ORDER BY wishes.grid, wishes.axis, wishes.category
    ) AS unknown
    JOIN (
        SELECT b.grid, b.axis, b.category, min(b.position) AS position FROM bins AS b GROUP BY b.grid, b.axis, b.category
    ) AS bins ON bins.grid = unknown.grid AND bins.axis = unknown.axis
    GROUP BY unknown.grid, unknown.axis
    UNION ALL
    -- The first in the alphabet is told; this one comes after those that explain it.
    SELECT 'no cells lie where axis ' || allowed.axis || ' is asked'
    FROM allowed
    WHERE allowed.wanted = 0
),
conditions AS (
    SELECT
        chosen.*,
        coalesce(
            (SELECT list({
                'stride': allowed.stride, 'size': allowed.size,
                'first': allowed.first, 'final': allowed.final, 'bits': allowed.bits
             })
             FROM allowed WHERE allowed.grid = chosen.grid),
            []
        ) AS allowed
    FROM chosen
),
-- For linear estimates: the nested nodes by which two cells share noise; the others have none of these.
levels AS (
    SELECT chosen.period, chosen.revision, chosen.grid, v.level, v.axis, v.width, v.coefficient
    FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_covariance')) AS v
    JOIN chosen ON chosen.period = v.period AND chosen.revision = v.revision
    WHERE v.release = (SELECT asked.release FROM asked)
),
widths AS (
    SELECT DISTINCT levels.grid, levels.axis, levels.width FROM levels
),
-- Per axis and width, the sum over the nodes of (wanted positions in the node)².
squares AS (
    SELECT
        spans.grid, spans.axis, spans.width,
        CASE
            WHEN spans.first // spans.width = spans.final // spans.width THEN (spans.final - spans.first + 1.0) ** 2
            ELSE (spans.width - spans.first % spans.width) ** 2.0 + (spans.final % spans.width + 1.0) ** 2
                + (spans.final // spans.width - spans.first // spans.width - 1) * spans.width ** 2.0
        END AS squares
    FROM (
        SELECT
            w.grid, w.axis, w.width,
            coalesce(allowed.first, 0) AS first, coalesce(allowed.final, axes.size - 1) AS final
        FROM widths AS w
        JOIN axes ON axes.grid = w.grid AND axes.axis = w.axis
        LEFT JOIN allowed ON allowed.grid = w.grid AND allowed.axis = w.axis
        WHERE allowed.bits IS NULL
    ) AS spans
    UNION ALL
    SELECT nodes.grid, nodes.axis, nodes.width, sum(CAST(nodes.wanted AS DOUBLE) ** 2) AS squares
    FROM (
        SELECT w.grid, w.axis, w.width, positions.position // w.width AS node, count(*) AS wanted
        FROM widths AS w
        JOIN allowed ON allowed.grid = w.grid AND allowed.axis = w.axis AND allowed.bits IS NOT NULL
        JOIN positions ON positions.grid = w.grid AND positions.axis = w.axis AND positions.is_wanted
        GROUP BY w.grid, w.axis, w.width, node
    ) AS nodes
    GROUP BY nodes.grid, nodes.axis, nodes.width
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
        c.period, c.revision,
        any_value(c.noise_scale) AS noise_scale, any_value(c.noise_variance) AS noise_variance,
        any_value(variances.linear_variance) AS linear_variance,
        count(*) AS cells, sum(t.estimate) AS estimate, sum(t.unbiased_estimate) AS unbiased
    FROM conditions AS c
    JOIN dph_cells AS t
        ON t.period = c.period AND t.revision = c.revision
        AND len(list_filter(
            c.allowed,
            lambda k: (t.cell_number // k.stride) % k.size NOT BETWEEN k.first AND k.final
                OR coalesce(get_bit(k.bits, CAST((t.cell_number // k.stride) % k.size AS INTEGER)) = 0, false)
        )) = 0
    LEFT JOIN variances ON variances.period = c.period AND variances.revision = c.revision
    GROUP BY c.period, c.revision
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
WHERE CASE WHEN found.problem IS NULL THEN true ELSE error('dph_box: ' || found.problem) END
ORDER BY barred.period
