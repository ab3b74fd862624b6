-- The axes and levels that a question names, in the order of the alphabet: those that have conditions, and others that it is asked
-- by. In: boxes, as JSON; along, a list of axes that are summed along; by, a list of names.
SELECT {
                        'by': list_sort(list_filter(list_distinct(w.asked_by), lambda x: NOT list_contains(w.boxed, x))),
                        'boxed': list_sort(list_distinct(w.boxed))
                    }
                    FROM (
                        SELECT
                            coalesce(TRY_CAST({by} AS VARCHAR[]), []) AS asked_by,
                            flatten([{along}] || list_transform(g.boxes, lambda x: json_keys(x))) AS boxed
                        FROM (SELECT list_filter([{boxes}], lambda x: x IS NOT NULL) AS boxes) AS g
                        -- A box that is no object, or names an axis twice, is refused by the release's own table.
                        WHERE len(list_filter(
                            g.boxes,
                            lambda x: json_type(x) <> 'OBJECT' OR len(json_keys(x)) <> len(list_distinct(json_keys(x)))
                        )) = 0
                    ) AS w
