-- What the bound cut in both of two periods, or of two revisions of one, from `one_cap` and `two_cap`; where a quality table counts it
-- in one alone, that it is not known in the other.
CASE
        WHEN one_cap.cut IS NOT NULL OR two_cap.cut IS NOT NULL THEN
            CASE
                WHEN {same_records}
                    THEN 'in revision ' || (SELECT c.revision FROM chosen AS c ORDER BY c.place LIMIT 1) || ' '
                ELSE '{first_period}'
            END || coalesce({first_capped}, '{count_is}{cap_unknown}')
            || CASE
                WHEN {same_records}
                    THEN '. In revision ' || (SELECT c.revision FROM chosen AS c ORDER BY c.place DESC LIMIT 1) || ' '
                ELSE '{second_period}'
            END || coalesce({second_capped}, '{count_is}{cap_unknown}')
    END AS capped
