-- What is wrong with the list of axes or levels that rows are asked by: rows of `problem`. In: axes, SQL for the list; wanted_axes,
-- which has the axes and levels of each grid, and whether each is asked.
SELECT 'there is no axis ' || unknown.axis || ' in period ' || chosen.period || '; the axes are ' || known.said AS problem
FROM chosen
JOIN (
    SELECT
        w.grid, list(w.axis) AS axes, string_agg(w.axis, ', ' ORDER BY w.stride DESC, w.axis <> w.level_of, w.axis) AS said
    FROM wanted_axes AS w
    GROUP BY w.grid
) AS known ON known.grid = chosen.grid
JOIN (SELECT unnest(TRY_CAST({{ axes }} AS VARCHAR[])) AS axis) AS unknown ON NOT list_contains(known.axes, unknown.axis)
UNION ALL
SELECT 'axis ' || w.axis || ' is an amount: its rows are not counted by size; ask for its sum or mean, by dph_sum or dph_mean'
FROM wanted_axes AS w
WHERE w.is_asked AND w.amount
UNION ALL
SELECT 'the axes are a list of names, as [''' || CAST({{ axes }} AS VARCHAR) || '''], not ' || CAST({{ axes }} AS VARCHAR)
WHERE {{ axes }} IS NOT NULL AND TRY_CAST({{ axes }} AS VARCHAR[]) IS NULL
UNION ALL
SELECT 'axis ' || alike.axis || ' cannot be left out where ' || w.axis || ' is asked: their columns look alike'
FROM wanted_axes AS w JOIN wanted_axes AS alike ON alike.grid = w.grid
WHERE w.is_asked AND NOT alike.is_asked
    AND regexp_replace(alike.axis, '_(lower|upper|label)$', '') IN (w.axis)
