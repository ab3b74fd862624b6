-- A number in words, never as a power of ten: whole from 1,000 on. In: number; sign, + where both signs are written; digits, of a
-- smaller one.
CASE
            WHEN abs({number}) >= 999.5 AND TRY_CAST(round({number}) AS HUGEINT) IS NOT NULL
                THEN CASE WHEN {number} > 0 THEN '{sign}' ELSE '' END || format('{:,}', CAST(round({number}) AS HUGEINT))
            WHEN abs({number}) < 0.0001 AND {number} <> 0 THEN printf('%{sign}.6f', {number})
            ELSE printf('%{sign}.{digits}g', {number})
        END
