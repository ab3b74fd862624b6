-- How far all rows that the bound cut, wherever they fell, would move a ratio: in words; null where it is not known.
CASE
    WHEN
        barred.first_unbiased >= 0 AND barred.second_unbiased > 0
        AND (barred.first_unbiased <= barred.second_unbiased OR NOT barred.is_part)
        THEN
            'with them this ratio would be from '
            || {{ number('(barred.first_unbiased / (barred.second_unbiased + capping.cut_upper))') }} || ' to '
            || {{ number('(
                (barred.first_unbiased + capping.cut_upper)
                / (barred.second_unbiased + CASE WHEN barred.is_part THEN capping.cut_upper ELSE 0 END)
            )') }} || ' at most'
END
