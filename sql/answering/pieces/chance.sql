-- What stands beside an answer whose interval may leave chance out.
CASE WHEN {{ asked }} THEN {{ notes.CHANCE_WITHIN | literal }} ELSE {{ chance_outside }} END AS chance
