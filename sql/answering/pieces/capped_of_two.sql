-- What the bound cut in both of two periods, or of two revisions of one, from `one_cap` and `two_cap`; where a quality table counts it
-- in one alone, that it is not known in the other.
CASE
        WHEN barred.one_cap.cut IS NOT NULL OR barred.two_cap.cut IS NOT NULL THEN
            CASE
                WHEN {{ same_records | default('false') }}
                    THEN 'in revision ' || (SELECT c.revision FROM summed AS c ORDER BY c.place LIMIT 1) || ' '
                ELSE {{ notes.FIRST_PERIOD | literal }}
            END || coalesce({{ capped('barred.one_cap') }}, {{ (notes.COUNT_IS ~ notes.CAP_UNKNOWN) | literal }})
            || CASE
                WHEN {{ same_records | default('false') }}
                    THEN '. In revision ' || (SELECT c.revision FROM summed AS c ORDER BY c.place DESC LIMIT 1) || ' '
                ELSE {{ notes.SECOND_PERIOD | literal }}
            END || coalesce({{ capped('barred.two_cap') }}, {{ (notes.COUNT_IS ~ notes.CAP_UNKNOWN) | literal }})
    END AS capped
