-- The rows of a period that may count by a charge's state, in a folder for each number of rows that a unit of it may have counted.
-- In: rows of a period that lie in cells, with their unit; the charge's state; the year's key. Grain: one row per staged row. Who is not in
-- the state is not counted. Uncompressed: the files live for one run.
COPY (
    SELECT staged.*, granted.rows AS granted
    FROM read_parquet({staged}) AS staged JOIN (
        SELECT named.unit, state.rows
        FROM (
            SELECT unit, unhex(sha256({key} || CAST(unit AS VARCHAR))) AS key
            FROM (SELECT DISTINCT unit FROM read_parquet({staged}))
        ) AS named JOIN read_parquet({state}) AS state ON state.unit = named.key
        WHERE state.rows > 0
    ) AS granted ON granted.unit = staged.unit
) TO {target} (FORMAT parquet, PARTITION_BY (granted), COMPRESSION uncompressed)
