-- The state of a year after one more charge: what each unit has paid, how many of its rows the charge counts, and whether it is left out
-- for the first time in the year (2), or was before (1).
-- In: the units that have rows in cells, with their names and how many rows; the state before, if there is one. Grain: one row per unit.
-- A unit that is left out has rows in cells, and cannot pay for one. No expression here can raise an error for any unit.
COPY (
    WITH known AS (
        SELECT
            coalesce(units.name, before.unit) AS unit,
            coalesce(before.paid, 0) AS paid,
            coalesce(before.left, 0) AS left_before,
            coalesce(units.held, 0) AS held
        FROM ({before}) AS before FULL JOIN read_parquet({units}) AS units ON units.name = before.unit
    ),
    granted AS (
        SELECT *, greatest(least({rows}, ({pays} - paid) // {price}), 0) AS most
        FROM known
    )
    SELECT
        unit,
        CAST(paid + least(held, most) * {price} AS BIGINT) AS paid,
        CAST(least(held, most) AS INTEGER) AS rows,
        CAST(CASE WHEN left_before > 0 THEN 1 WHEN held > 0 AND most = 0 THEN 2 ELSE 0 END AS TINYINT) AS "left"
    FROM granted
) TO {target} (
    FORMAT parquet, COMPRESSION uncompressed, USE_TMP_FILE false, KV_METADATA {dphist_state: {facts}, dphist_checksum: {checksum}}
)
