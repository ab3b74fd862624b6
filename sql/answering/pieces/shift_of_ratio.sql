-- How far all rows that the bound cut, wherever they fell, would move a ratio: in words; null where it is not known.
CASE WHEN barred.first_unbiased >= 0 AND barred.second_unbiased > 0 THEN
    'with them this ratio would be from ' || printf(
        '%.4g to %.4g', barred.first_unbiased / (barred.second_unbiased + capping.cut_upper),
        (barred.first_unbiased + capping.cut_upper) / barred.second_unbiased
    ) || ' at most'
END
