-- The staged rows of all units, those of each unit together and in their order: by time, positions and marks.
-- In: the staged file; its columns, the unit first. Grain: one row per staged row. All but the unit are whole numbers.
COPY (
    SELECT *
    FROM read_parquet({staged})
    WHERE moment IS NOT NULL
    ORDER BY {columns}
) TO {target} (FORMAT parquet, COMPRESSION uncompressed)
