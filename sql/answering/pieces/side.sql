-- The rows of `summed` for one box of one release, and the problem of the question, if there is any.
{opening},
{bins},
{boxes_asked},
{boxes},
{nested},
{atoms},
{sums},
first_problems AS (SELECT CAST(NULL AS VARCHAR) AS problem)
SELECT found.problem, summed.* EXCLUDE (groups)
FROM ({found}) AS found LEFT JOIN summed ON found.problem IS NULL
