-- The rows of one period that lie in a declared cell: whose they are, and the number of the cell.
-- In: the parameters of its parts (files, edges, ends of the period). Grain: one row a kept source row.
-- No expression here can raise on any value: what does not parse becomes null, and null goes to `other` or is dropped.
COPY (
    SELECT {columns}
    FROM ({cells})
    WHERE {kept}
) TO {target} (FORMAT parquet, COMPRESSION lz4_raw)
