-- The columns of a table of a PostgreSQL server, in order.
-- In: schema and table, as SQL text. Grain: one row per column; the kind of the table and the encoding are the same in all rows.
SELECT
    tables.relkind::text AS kind,
    current_setting('server_encoding') AS encoding,
    columns.attname::text AS name,
    CASE types.typtype WHEN 'e' THEN 'enum' ELSE coalesce(bases.typname, types.typname)::text END AS type_name,
    columns.attgenerated::text AS generated
FROM pg_catalog.pg_class AS tables
JOIN pg_catalog.pg_namespace AS schemas ON schemas.oid = tables.relnamespace
JOIN pg_catalog.pg_attribute AS columns ON columns.attrelid = tables.oid
JOIN pg_catalog.pg_type AS types ON types.oid = columns.atttypid
LEFT JOIN pg_catalog.pg_type AS bases ON bases.oid = types.typbasetype AND types.typtype = 'd'
WHERE schemas.nspname = {schema} AND tables.relname = {table} AND columns.attnum > 0 AND NOT columns.attisdropped
ORDER BY columns.attnum
