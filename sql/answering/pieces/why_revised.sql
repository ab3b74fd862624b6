-- Why the later one of two revisions was made, in the words of whoever made it; empty where they gave none.
coalesce(
    (
        SELECT string_agg('; revision ' || c.revision || ' was made because: ' || c.reason, '' ORDER BY c.revision)
        FROM (SELECT DISTINCT s.revision, s.reason FROM summed AS s) AS c WHERE c.revision > (SELECT min(o.revision) FROM summed AS o)
    ),
    ''
)
