-- What the bound cut, beside a rate, a mean or a sum. In: measured, further cases that tell how far it moves them.
CASE
        WHEN capping.is_uncapped THEN NULL
        WHEN capping.cut IS NULL THEN {{ notes.CAP_UNKNOWN | literal }}
        WHEN capping.cut_lower = 0 THEN {{ capped('capping') }} {{ measured | default('') }}
        ELSE {{ capped('capping') }}
    END AS capped
