-- The rows of one period that lie in a declared cell: their privacy unit, and the number of the cell.
-- In: the parameters of its parts (files, edges, ends of the period). Grain: one row per kept source row.
-- No expression here can raise an error for any value: a value that cannot be parsed becomes null, and null is counted in `other`
-- or dropped.
COPY (
    SELECT {columns}
    FROM ({cells})
    WHERE {kept}
) TO {target} (FORMAT parquet, COMPRESSION lz4_raw)
