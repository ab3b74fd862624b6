-- The rows of a period that may count by a charge's state, in a folder for each number of rows that a unit of it may have counted.
-- In: rows of a period that lie in cells, with the names of their units; the charge's state. Grain: one row per row. Who is not in the state
-- is not counted. Uncompressed: the files live for one run.
COPY (
    SELECT named.* EXCLUDE (name), state.rows AS granted
    FROM read_parquet({named}) AS named JOIN read_parquet({state}) AS state ON state.unit = named.name
    WHERE state.rows > 0
) TO {target} (FORMAT parquet, PARTITION_BY (granted), COMPRESSION uncompressed)
