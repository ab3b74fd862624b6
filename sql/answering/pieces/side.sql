-- The rows of `summed` for one box of one release, and the problem of the question, if there is any.
{% include 'pieces/sums_of_boxes.sql' %}
first_problems AS (SELECT CAST(NULL AS VARCHAR) AS problem)
SELECT found.problem, summed.* EXCLUDE (groups)
FROM ({% include 'pieces/found.sql' %}) AS found LEFT JOIN summed ON found.problem IS NULL
