-- What the bound cut in both of two periods, where quality tables count it, from `one_cap` and `two_cap`.
CASE
        WHEN one_cap.cut + two_cap.cut IS NOT NULL
            THEN 'in the first period ' || {first_capped} || '. In the second one ' || {second_capped}
    END AS capped
