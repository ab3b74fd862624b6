-- This condition is in the last WHERE, because DuckDB does not compute an error in a column that a query does not read.
CASE WHEN found.problem IS NULL THEN true ELSE error({{ asked_by | default(name | literal) }} || ': ' || found.problem) END
