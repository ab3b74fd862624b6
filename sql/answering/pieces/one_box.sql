-- The rest of a macro that answers for one box, {box}: one row for each period.
{bins},
boxes AS (SELECT 'box' AS source, {box} AS box),
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
WHERE {no_problem}
ORDER BY barred.period
