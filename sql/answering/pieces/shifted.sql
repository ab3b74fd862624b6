-- What the bound may do to a share, a rate, a ratio or a mean. In: shift, in words, null where it is not known.
CASE
        WHEN capping.is_uncapped THEN NULL
        WHEN capping.cut IS NULL THEN '{cap_unknown}'
        ELSE {capped_of_release} || coalesce('; ' || {shift}, '')
    END AS capped
