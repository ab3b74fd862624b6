-- The axes and levels that a question names, in the order of the alphabet: those that have conditions, and others that it is asked
-- by. In: along, a list of axes that are summed along; by, a list of names.
SELECT {
                        'by': list_sort(list_filter(list_distinct(w.asked_by), lambda x: NOT list_contains(w.boxed, x))),
                        'boxed': list_sort(list_distinct(w.boxed))
                    }
                    FROM (
                        SELECT
                            coalesce(TRY_CAST({{ by | default('[]') }} AS VARCHAR[]), []) AS asked_by,
                            list_concat({{ along | default('CAST([] AS VARCHAR[])') }}, (SELECT list(c.axis) FROM asked_conditions AS c)) AS boxed
                        -- The release's own table refuses an odd box.
                        WHERE NOT EXISTS (FROM odd_boxes)
                    ) AS w
