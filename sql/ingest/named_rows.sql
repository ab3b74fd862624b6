-- The rows of a period with the name that their unit has in states of a year: half of the SHA-256 of the year's key and the unit's text.
-- In: rows of a period that lie in cells, with their unit, equal ones once where they are one row; the key, 32 letters. Grain: one row per
-- row. Uncompressed: the file lives for one run.
COPY (
    SELECT *, CAST(left(sha256({key} || CAST(unit AS VARCHAR)), 32) AS UUID) AS name
    FROM {staged}
) TO {target} (FORMAT parquet, COMPRESSION uncompressed)
