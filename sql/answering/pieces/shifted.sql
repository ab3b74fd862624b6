-- What the bound may do to a rate, a mean or a sum. In: measured, further cases; shift, in words, null where it is not known.
CASE
        WHEN capping.is_uncapped THEN NULL
        WHEN capping.cut IS NULL THEN {{ notes.CAP_UNKNOWN | literal }}{{ measured | default('') }}
        ELSE {{ capped('capping') }} || coalesce('; ' || {{ shift }}, '')
    END AS capped
