-- The positions that boxes select along each axis of each grid, and the problems of the boxes.
-- In: `conditions`, the name of what has them (source, axis, kind, members), if those of the boxes are not all; named (name, source): a name stands for the cells that lie in all of its sources, `inner` for
-- those that lie in them entirely; `is_range`, for the positions of dph_range; `takes_any_end`, whether a box may cut bins.
grid_axes AS (
    SELECT DISTINCT
        bins.grid, bins.axis, bins.level_of, bins.stride, bins.size, bins.binned, bins.calendar, bins.amount
    FROM bins
),
axes AS (
    SELECT
        a.*,
        coalesce(a.kind IN ('not', 'odd'), false) AS is_negated,
        CASE WHEN a.kind <> 'list' THEN NULL
            WHEN a.calendar THEN date_diff('day', DATE '1970-01-01', TRY_CAST(a.members[1] AS DATE))
            ELSE TRY_CAST(a.members[1] AS DOUBLE)
        END AS low,
        CASE WHEN a.kind <> 'list' THEN NULL
            WHEN a.calendar THEN date_diff('day', DATE '1970-01-01', TRY_CAST(a.members[2] AS DATE))
            ELSE TRY_CAST(a.members[2] AS DOUBLE)
        END AS high
    FROM (
        SELECT boxes.source, d.*, c.kind, c.members
        FROM grid_axes AS d CROSS JOIN asked_boxes AS boxes
        LEFT JOIN {{ conditions | default('asked_conditions') }} AS c ON c.source = boxes.source AND c.axis = d.axis
    ) AS a
),
wishes AS (
    SELECT
        written.source, written.grid, written.axis,
        CASE WHEN labels.categories = 1 THEN labels.category ELSE written.category END AS category,
        CASE WHEN labels.categories > 1 THEN labels.codes END AS codes_of_label
    FROM (
        SELECT axes.source, axes.grid, axes.axis, unnest(axes.members) AS category
        FROM axes
        WHERE axes.kind <> 'odd' AND NOT axes.binned
    ) AS written
    LEFT JOIN (
        -- A category may be asked for by its label, if no other category has that label and no category that name.
        SELECT
            bins.grid, bins.axis, bins.label, min(bins.category) AS category, count(*) AS categories,
            string_agg(bins.category, ', ' ORDER BY bins.position) AS codes
        FROM bins ANTI JOIN bins AS code ON code.grid = bins.grid AND code.axis = bins.axis AND code.category = bins.label
        WHERE bins.label IS NOT NULL
        GROUP BY bins.grid, bins.axis, bins.label
    ) AS labels
        ON labels.grid = written.grid AND labels.axis = written.axis AND labels.label = written.category
),
-- Ends that are not edges of bins; only an end between the first and the last edge cuts a bin.
cuts AS (
    SELECT
        ends.grid, ends.axis, any_value(edges.stride) AS stride, any_value(ends.written) AS written,
        max_by(edges.written, edges.edge) FILTER (isfinite(edges.edge) AND edges.edge < ends.bound) AS edge_below,
        min_by(edges.written, edges.edge) FILTER (isfinite(edges.edge) AND edges.edge > ends.bound) AS edge_above,
        ends.bound > min(edges.edge) AND ends.bound < max(edges.edge) AS cuts_a_cell
    FROM (
        SELECT
            axes.grid, axes.axis,
            unnest([axes.low, axes.high]) AS bound,
            unnest([axes.members[1], axes.members[2]]) AS written
        FROM axes
        WHERE axes.kind = 'list' AND axes.binned
    ) AS ends
    JOIN (
        SELECT
            bins.grid, bins.axis, bins.stride, unnest([bins.bin_lower, bins.bin_upper]) AS edge,
            unnest([bins.lower_end, bins.upper_end]) AS written
        FROM bins
    ) AS edges ON edges.grid = ends.grid AND edges.axis = ends.axis
    WHERE isfinite(ends.bound)
    GROUP BY ends.grid, ends.axis, ends.bound
    HAVING NOT bool_or(ends.bound = edges.edge)
),
-- A range that was written with the last number or day of its last bin, or the first one of its first: with its edges.
meant AS (
    SELECT
        r.grid, r.axis, r.stride,
        '[' || concat_ws(', ', coalesce(r.first_edge, r.low, 'NULL'), coalesce(r.last_edge, r.high, 'NULL')) || ']' AS range
    FROM (
        SELECT
            axes.grid, axes.axis, axes.stride, axes.members[1] AS low, axes.members[2] AS high,
            min(regexp_replace(bins.lower_end, '\.0$', '')) FILTER (TRY_CAST(bins.first AS DOUBLE) = axes.low) AS first_edge,
            min(regexp_replace(bins.upper_end, '\.0$', '')) FILTER (
                CASE WHEN bins.calendar THEN bins.bin_upper - 1 ELSE TRY_CAST(bins.last AS DOUBLE) END = axes.high
            ) AS last_edge
        FROM axes JOIN bins ON bins.grid = axes.grid AND bins.axis = axes.axis
        WHERE axes.kind = 'list' AND axes.binned
        GROUP BY ALL
    ) AS r
    SEMI JOIN cuts ON cuts.grid = r.grid AND cuts.axis = r.axis AND (
        cuts.written = r.low AND r.first_edge IS NOT NULL OR cuts.written = r.high AND r.last_edge IS NOT NULL
    )
),
named AS ({{ named | default("SELECT 'box' AS name, 'box' AS source") }}),
names AS (SELECT DISTINCT named.name FROM named),
-- The positions that lie within every axis or level that has a condition, and those that overlap it.
asked_positions AS (
    SELECT
        axes.source, bins.grid, bins.level_of, bins.stride, bins.size, bins.position,
        coalesce(
            CASE
                WHEN axes.binned THEN bins.bin_lower >= coalesce(axes.low, '-inf')
                    AND bins.bin_upper <= coalesce(axes.high, 'inf')
                ELSE (wishes.axis IS NOT NULL) <> axes.is_negated
            END,
            false
        ) AS is_within,
        coalesce(
            CASE
                WHEN axes.binned THEN bins.bin_upper > coalesce(axes.low, '-inf')
                    AND bins.bin_lower < coalesce(axes.high, 'inf')
                ELSE (wishes.axis IS NOT NULL) <> axes.is_negated
            END,
            false
        ) AS is_around,
        -- The share of a cut bin that lies in the range.
        CASE
            WHEN is_within OR NOT axes.binned THEN 1
            ELSE (least(bins.bin_upper, coalesce(axes.high, 'inf')) - greatest(bins.bin_lower, coalesce(axes.low, '-inf')))
                / (bins.bin_upper - bins.bin_lower)
        END AS share
    FROM axes JOIN bins ON bins.grid = axes.grid AND bins.axis = axes.axis
    LEFT JOIN wishes
        ON wishes.source = axes.source AND wishes.grid = bins.grid AND wishes.axis = bins.axis
            AND wishes.category IS NOT DISTINCT FROM bins.category
    WHERE axes.kind IS NOT NULL
),
-- The positions of every axis that meet the conditions on the axis and on its levels.
positions AS (
    SELECT
        p.name, p.grid, p.level_of AS axis, p.stride, p.size, p.position,
        bool_and(CASE WHEN p.name = 'inner' THEN p.is_within ELSE p.is_around END) AS is_wanted, min(p.share) AS share
    FROM (
        SELECT named.name, asked_positions.* EXCLUDE (source)
        FROM asked_positions JOIN named ON named.source = asked_positions.source
        {% if is_range is defined %}{% include 'pieces/range_positions.sql' %}{% endif %}
    ) AS p
    GROUP BY p.name, p.grid, p.level_of, p.stride, p.size, p.position
),
-- For each axis with a condition: the first and last selected position, and a bit for each position if there are gaps.
allowed AS (
    SELECT
        spans.* EXCLUDE (bits, first, final),
        coalesce(spans.first, 1) AS first,
        coalesce(spans.final, 0) AS final,
        CASE WHEN spans.wanted < spans.final - spans.first + 1 THEN spans.bits END AS bits
    FROM (
        SELECT
            positions.name, positions.grid, positions.axis,
            any_value(positions.stride) AS stride, any_value(positions.size) AS size,
            min(positions.position) FILTER (positions.is_wanted) AS first,
            max(positions.position) FILTER (positions.is_wanted) AS final,
            min_by(positions.share, positions.position) FILTER (positions.is_wanted) AS first_share,
            max_by(positions.share, positions.position) FILTER (positions.is_wanted) AS final_share,
            count(*) FILTER (positions.is_wanted) AS wanted,
            CAST(
                string_agg(CASE WHEN positions.is_wanted THEN '1' ELSE '0' END, '' ORDER BY positions.position) AS BIT
            ) AS bits
        FROM positions
        GROUP BY positions.name, positions.grid, positions.axis
    ) AS spans
),
problems AS (
    FROM period_problems
    UNION ALL
    SELECT 'the box is a struct or a JSON object, with each axis once, as '
        || (
            SELECT first('{''' || bins.axis || ''': ' || bins.example || '}' ORDER BY bins.binned, bins.position)
            FROM (
                SELECT
                    b.axis, b.binned, b.position,
                    coalesce(
                        '''' || b.category || '''',
                        '[NULL, ' || CASE WHEN b.calendar THEN '''' || b.upper_end || '''' ELSE b.upper_end END || ']'
                    ) AS example
                FROM bins AS b WHERE b.category IS NOT NULL OR isfinite(b.bin_upper)
            ) AS bins
        )
        || ', not ' || odd_boxes.text[:60]
    FROM odd_boxes
    UNION ALL
    SELECT 'there is no axis ' || unknown.axis || ' in period ' || chosen.period || '; the axes are ' || known.said
    FROM chosen
    JOIN (
        SELECT
            a.grid, list(a.axis) AS axes,
            string_agg(a.axis, ', ' ORDER BY a.stride DESC, a.axis <> a.level_of, a.axis) AS said
        FROM grid_axes AS a
        GROUP BY a.grid
    ) AS known ON known.grid = chosen.grid
    JOIN asked_conditions AS unknown ON NOT list_contains(known.axes, unknown.axis)
    UNION ALL
    SELECT 'axis ' || axes.axis || CASE
        WHEN NOT axes.binned THEN ' takes categories, or all but some as {''not'': [''surgery'']}'
        ELSE ' takes a range as [low, high]' || CASE WHEN axes.calendar THEN ' of days as 2026-03-02' ELSE '' END
            || ', half-open, low below high, null for an open end'
    END
    FROM axes
    WHERE CASE
        WHEN NOT axes.binned THEN axes.is_negated AND (axes.kind = 'odd' OR len(axes.members) = 0)
        ELSE axes.kind <> 'list' OR len(axes.members) <> 2
            OR (axes.low IS NULL AND axes.members[1] IS NOT NULL)
            OR (axes.high IS NULL AND axes.members[2] IS NOT NULL)
            OR axes.low >= axes.high OR isnan(axes.high)
    END
    UNION ALL
    SELECT 'axis ' || a.axis || ' is an amount: its rows are not counted by size; ask for its sum or mean, by dph_sum or dph_mean'
    FROM grid_axes AS a JOIN asked_conditions AS c ON c.axis = a.axis
    WHERE a.amount
    UNION ALL
    SELECT 'axis ' || cuts.axis || ': ' || cuts.written || ' is not an edge; the nearest are '
        || concat_ws(' and ', cuts.edge_below, cuts.edge_above)
        || CASE
            WHEN cuts.edge_below || cuts.edge_above IS NOT NULL THEN '; dph_box and dph_range take any end'
            WHEN cuts.cuts_a_cell THEN '; dph_range takes any end'
            ELSE ''
        END
        || coalesce('; did you mean ' || meant.range || '?', '')
    FROM cuts LEFT JOIN meant ON meant.grid = cuts.grid AND meant.axis = cuts.axis
    WHERE NOT ({{ takes_any_end | default('false') }} AND coalesce(cuts.edge_below || cuts.edge_above IS NOT NULL, false))
    UNION ALL
    SELECT 'axis ' || wishes.axis || ' has categories ' || wishes.codes_of_label || ' with the label ' || wishes.category
        || '; use their codes'
    FROM wishes
    WHERE wishes.codes_of_label IS NOT NULL
    UNION ALL
    SELECT 'axis ' || unknown.axis || ' has no category ' || coalesce(unknown.category, 'for other')
        || '; it has ' || array_to_string(list_transform(list_sort(
            -- The most alike, in declared order.
            list(
                {'position': bins.position, 'category': bins.category}
                ORDER BY jaro_winkler_similarity(bins.category, unknown.category) DESC, bins.position
            ) FILTER (bins.category IS NOT NULL)[:20]
        ), lambda x: x.category), ', ')
        || CASE
            WHEN bool_or(bins.category IS NULL)
                THEN '; a value that is none of these lies in other; for the cell of all others write NULL'
            ELSE ''
        END
    FROM (
        SELECT wishes.grid, wishes.axis, min(wishes.category) AS category
        FROM wishes ANTI JOIN bins
            ON bins.grid = wishes.grid AND bins.axis = wishes.axis
                AND bins.category IS NOT DISTINCT FROM wishes.category
        GROUP BY wishes.grid, wishes.axis
    ) AS unknown
    JOIN (
        SELECT b.grid, b.axis, b.category, min(b.position) AS position FROM bins AS b GROUP BY b.grid, b.axis, b.category
    ) AS bins ON bins.grid = unknown.grid AND bins.axis = unknown.axis
    GROUP BY unknown.grid, unknown.axis, unknown.category
    UNION ALL
    -- Only the first problem in the alphabet is shown; this text sorts after the texts that explain it.
    SELECT 'no cells lie where axis ' || allowed.axis || ' is asked'
    FROM allowed
    WHERE allowed.wanted = 0 AND allowed.name NOT IN ('inner', 'both')
),
-- Each publication with each name: the conditions, and where its cells lie. If they are one run of cell numbers, no cell needs
-- a look at the conditions.
conditions AS (
    SELECT
        chosen.* EXCLUDE (release, is_latest, first_number),
        names.name,
        coalesce(held.allowed, []) AS allowed,
        chosen.first_number + coalesce(held.first_cell, 0) AS first_cell,
        chosen.first_number + chosen.cells - 1 - coalesce(held.beyond, 0) AS final_cell,
        coalesce(held.is_cut, false) AS is_cut,
        final_cell - first_cell + 1 = chosen.cells / coalesce(held.positions, 1) * coalesce(held.wanted, 1) AS is_run
    FROM chosen CROSS JOIN names
    LEFT JOIN (
        SELECT
            allowed.grid, allowed.name,
            list({
                'stride': allowed.stride, 'size': allowed.size,
                'first': allowed.first, 'final': allowed.final, 'bits': allowed.bits,
                'first_share': allowed.first_share, 'final_share': allowed.final_share
            } ORDER BY allowed.stride DESC) AS allowed,
            CAST(sum(allowed.first * allowed.stride) AS BIGINT) AS first_cell,
            CAST(sum((allowed.size - 1 - allowed.final) * allowed.stride) AS BIGINT) AS beyond,
            bool_or(allowed.first_share < 1 OR allowed.final_share < 1) AS is_cut,
            product(allowed.size) AS positions, product(allowed.wanted) AS wanted
        FROM allowed
        GROUP BY allowed.grid, allowed.name
    ) AS held ON held.grid = chosen.grid AND held.name = names.name
)
