-- How far all rows that the bound cut, wherever they fell, would move a mean: in words; null where it is not known.
CASE WHEN barred.rows > 0 THEN 'with them this mean would move by ' || {least_shift} || ' to ' || {most_shift} || ' at most' END
