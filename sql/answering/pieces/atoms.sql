-- Of releases from reports: how many intervals of a report lie in each box. They have one binned axis, of which a box wants
-- bins that lie together; other releases have none of these.
atoms AS (
    SELECT c.name, c.period, sum(bins.atoms) AS atoms
    FROM conditions AS c
    JOIN bins ON bins.grid = c.grid AND bins.atoms IS NOT NULL
    WHERE len(list_filter(c.allowed, lambda k: bins.position NOT BETWEEN k.first AND k.final)) = 0
    GROUP BY c.name, c.period
)
