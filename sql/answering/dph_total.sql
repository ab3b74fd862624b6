-- The estimated number of all (bounded) rows of a release, with its error bar: one row for each period, in order.
-- In: the release's table, with the catalogue's name before it where it is attached ('r.weekly_admissions'); a period,
-- by its first day; all without it.
CREATE OR REPLACE MACRO {schema}dph_total(release_name, period := NULL) AS TABLE
{opening},
{one_box}
