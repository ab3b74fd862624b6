-- What stands beside an answer whose interval may leave chance out.
CASE WHEN {asked} THEN '{chance_within}' ELSE '{chance_outside}' END AS chance
