-- How far all rows that the bound cut, wherever they fell, would move a mean: in words; null where it is not known.
CASE
    WHEN barred.rows > 0 THEN
        'with them this mean would move by '
        || {{ number('((barred.least - barred.unbiased) * capping.cut_upper / (barred.rows + capping.cut_upper))', '+', 3) }}
        || ' to '
        || {{ number('((barred.most - barred.unbiased) * capping.cut_upper / (barred.rows + capping.cut_upper))', '+', 3) }}
        || ' at most'
END
