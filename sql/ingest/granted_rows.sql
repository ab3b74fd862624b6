-- The rows of a period that may count by a charge's state, in a folder for each number of rows that a unit of it may have counted.
-- In: rows of a period that lie in cells, and their units, with names; the charge's state. Grain: one row per staged row. Who is not in
-- the state is not counted. Uncompressed: the files live for one run.
COPY (
    SELECT staged.*, granted.rows AS granted
    FROM read_parquet({staged}) AS staged JOIN (
        SELECT units.unit, state.rows
        FROM read_parquet({units}) AS units JOIN read_parquet({state}) AS state ON state.unit = units.name
        WHERE state.rows > 0
    ) AS granted ON granted.unit = staged.unit
) TO {target} (FORMAT parquet, PARTITION_BY (granted), OVERWRITE, COMPRESSION uncompressed)
