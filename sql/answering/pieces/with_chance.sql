-- Half the width of an interval, with chance if the question asks for it: `reach` by the noise, and so many times the standard
-- deviation of counts that vary as Poisson's do, whose square is `variance`.
CASE WHEN {asked} THEN sqrt(({reach}) ** 2 + {sure} * ({variance})) ELSE {reach} END
