-- The rows of one period that lie in a declared cell: their privacy unit, and the number of the cell. Where each row is
-- its own unit: how many rows each cell has.
-- In: the parameters of its parts (files, edges, ends of the period). Grain: one row per kept source row, or per cell.
-- No expression here can raise an error for any value: a value that cannot be parsed becomes null, and null is counted in `other`
-- or dropped. Uncompressed: the file lives for one run, and is read several times.
COPY (
    SELECT {columns}
    FROM ({cells})
    WHERE {kept}
    {grouped}
) TO {target} (FORMAT parquet, COMPRESSION uncompressed)
