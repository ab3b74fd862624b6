-- How far all rows that the bound cut, wherever they fell, would move a share: in words; null where it is not known.
CASE WHEN barred.whole > 0 AND barred.unbiased BETWEEN 0 AND 1 THEN
    'with them this share would move by ' || printf(
        '%+.2f to %+.2f', -100 * barred.unbiased * capping.cut_upper / (barred.whole + capping.cut_upper),
        100 * (1 - barred.unbiased) * capping.cut_upper / (barred.whole + capping.cut_upper)
    ) || ' points at most'
END
