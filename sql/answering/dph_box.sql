-- The estimated count in a box of cells, with its error bar: one row for each period (its latest revision), in order.
-- In: the release's table, with the catalogue's name before it where it is attached ('r.weekly_admissions'); the box as
-- a struct or as JSON text: per axis [low, high) in axis units (days as '2026-03-02') with null for an open end, or a
-- category, null for `other`, or a list of categories; a level of an axis's hierarchy likewise. An axis that is left out
-- is summed over. A period by its first day; all without it.
CREATE OR REPLACE MACRO {schema}dph_box(release_name, box := '{}', period := NULL) AS TABLE
WITH
-- Named first, and as no release can be: a name of a part below would hide a release of the same name.
dph_cells AS (
    SELECT t.period, t.revision, t.cell_number, t.estimate, t.unbiased_estimate FROM query_table(release_name) AS t
),
{chosen},
{bins},
boxes AS (SELECT 'box' AS source, CAST(box AS JSON) AS box),
named AS (SELECT 'box' AS name, 'box' AS source),
{boxes},
{nested},
{atoms},
{sums},
barred AS (
    SELECT summed.*, {reach} AS half_width
    FROM summed
),
first_problems AS (SELECT CAST(NULL AS VARCHAR) AS problem)
SELECT
    barred.period,
    barred.revision,
    {answer}
FROM ({found}) AS found LEFT JOIN barred ON true
WHERE CASE WHEN found.problem IS NULL THEN true ELSE error('dph_box: ' || found.problem) END
ORDER BY barred.period
