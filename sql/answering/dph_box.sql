-- The estimated count in a box of cells, with its error bar: one row for each period (its latest revision), in order.
-- In: the release's table, with the catalogue's name before it where it is attached ('r.weekly_admissions'); the box as
-- a struct or as JSON text: per axis [low, high) in axis units (days as '2026-03-02') with null for an open end, or a
-- category, null for `other`, or a list of categories; a level of an axis's hierarchy likewise. An axis that is left out
-- is summed over. A period by its first day; all without it.
CREATE OR REPLACE MACRO {schema}dph_box(release_name, box := '{}', period := NULL) AS TABLE
{opening},
{one_box}
