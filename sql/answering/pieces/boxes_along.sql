-- The conditions of the box of the question; without one on the axis that is summed along, it leaves out `other`.
conditions_of_boxes AS (
    FROM asked_conditions
    UNION ALL
    SELECT 'box' AS source, given.axis, 'list' AS kind, [CAST(NULL AS VARCHAR), NULL] AS members FROM given
    WHERE EXISTS (FROM bins WHERE bins.axis = given.axis AND bins.binned)
        AND given.axis NOT IN (SELECT c.axis FROM asked_conditions AS c)
)
