-- The units of a period, the name that each has in the states of a year (half of the SHA-256 of key and unit), and how many rows it has.
-- In: rows of a period that lie in cells, with their unit, equal ones once where they are one row; the key, 32 letters. Grain: one row per
-- unit. Uncompressed: the file lives for one run.
COPY (
    SELECT unit, CAST(left(sha256({key} || CAST(unit AS VARCHAR)), 32) AS UUID) AS name, count(*) AS held
    FROM {staged}
    GROUP BY unit
) TO {target} (FORMAT parquet, USE_TMP_FILE true, COMPRESSION uncompressed)
