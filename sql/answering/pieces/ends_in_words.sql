-- A range of an axis in words, from the texts of its ends, {low} and {high}.
CASE
        WHEN {low} = '-inf' AND {high} = 'inf' THEN 'all'
        WHEN {low} = '-inf' THEN {high} || ' and below'
        WHEN {high} = 'inf' THEN {low} || ' and above'
        ELSE {low} || ' to ' || {high}
    END
