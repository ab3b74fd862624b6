-- The estimated number of all (bounded) rows of a release, with its error bar: one row for each period, in order.
-- In: the release's table, with the catalogue's name before it where it is attached ('r.weekly_admissions'); a period,
-- by its first day; all without it.
CREATE OR REPLACE MACRO {schema}dph_total(release_name, period := NULL) AS TABLE
WITH
-- Named first, and as no release can be: a name of a part below would hide a release of the same name.
dph_cells AS (
    SELECT t.period, t.revision, t.cell_number, t.estimate, t.unbiased_estimate FROM query_table(release_name) AS t
),
{chosen},
{bins},
boxes AS (SELECT 'box' AS source, JSON '{}' AS box),
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
WHERE CASE WHEN found.problem IS NULL THEN true ELSE error('dph_total: ' || found.problem) END
ORDER BY barred.period
