-- What stands beside an answer whose interval may leave chance out; NULL beside one without an interval.
CASE
    WHEN ci_lower IS NULL THEN NULL
    WHEN {{ asked }} THEN {{ notes.CHANCE_WITHIN | literal }}
    ELSE {{ chance_outside }}
END AS chance
