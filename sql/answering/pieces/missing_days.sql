-- How many days between periods are in no published one, in words; null where there are none. In: days; more, words as SQL.
CASE WHEN {days} > 0 THEN {days} || CASE WHEN {days} = 1 THEN '{missing_day}' ELSE '{missing_days}' END || {more} END
