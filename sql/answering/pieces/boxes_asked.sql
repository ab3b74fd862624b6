-- The boxes of the question, with their conditions.
boxes AS (SELECT b.source FROM asked_boxes AS b),
conditions_of_boxes AS (FROM asked_conditions)
