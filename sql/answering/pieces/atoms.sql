-- For estimates from reports: the number of atoms (report intervals) in each box. Such releases have one binned axis, of which a
-- box selects neighbouring bins; other releases have no atoms.
atoms AS (
    SELECT c.name, c.period, c.revision, {{ 'coalesce(b.first * b.stride, 0) AS cell, ' if rows_by is defined }}sum(bins.atoms) AS atoms
    FROM conditions AS c
    JOIN bins ON bins.grid = c.grid AND bins.atoms IS NOT NULL
    {% if rows_by is defined %}LEFT JOIN by_positions AS b ON b.grid = bins.grid AND b.axis = bins.axis AND b.position = bins.position
    {% endif %}WHERE len(list_filter(c.allowed, lambda k: bins.position NOT BETWEEN k.first AND k.final)) = 0
    GROUP BY c.name, c.period, c.revision{{ ', coalesce(b.first * b.stride, 0)' if rows_by is defined }}
)
