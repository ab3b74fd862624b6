-- How far all rows that the bound cut, wherever they fell, would move a mean: in words; null where it is not known.
CASE WHEN barred.rows > 0 THEN
    'with them this mean would move by ' || printf(
        '%+.3g to %+.3g',
        (barred.least - barred.unbiased) * capping.cut_upper / (barred.rows + capping.cut_upper),
        (barred.most - barred.unbiased) * capping.cut_upper / (barred.rows + capping.cut_upper)
    ) || ' at most'
END
