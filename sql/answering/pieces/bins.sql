-- The bins of the grids of this question, with their ends as text.
bins AS (
    SELECT
        b.*,
        CASE WHEN b.calendar
            THEN strftime(DATE '1970-01-01' + TRY_CAST(b.bin_lower AS INTEGER), '%Y-%m-%d')
            ELSE CAST(b.bin_lower AS VARCHAR)
        END AS lower_end,
        CASE WHEN b.calendar
            THEN strftime(DATE '1970-01-01' + TRY_CAST(b.bin_upper AS INTEGER), '%Y-%m-%d')
            ELSE CAST(b.bin_upper AS VARCHAR)
        END AS upper_end
    FROM {{ table('dph_bins', release) }} AS b
    WHERE b.grid IN (SELECT chosen.grid FROM chosen)
)
