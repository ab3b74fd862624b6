-- How far all rows that the bound cut, wherever they fell, would move a ratio: in words; null where it is not known.
CASE WHEN barred.first_unbiased >= 0 AND barred.second_unbiased > 0
        AND (barred.first_unbiased <= barred.second_unbiased OR NOT lying.is_part) THEN
    'with them this ratio would be from ' || {least_ratio} || ' to ' || {most_ratio} || ' at most'
END
