-- The ends of the intervals of `rows`, which have `reach`, `unbiased` and the law of their noise. Where noisy cells and sums of
-- groups answer, each holds with 97.5 %, so what they share holds with 95 %, and its middle is the number; if they do not meet,
-- one of them misses, and that of the smaller noise is told.
-- Public figures cut them off, no farther than at the number.
SELECT
        b.* REPLACE (
            {{ limited_lower('b.ci_lower', 'b.unbiased', 'b.known_least', 'b.known_most') }} AS ci_lower,
            {{ limited_upper('b.ci_upper', 'b.unbiased', 'b.known_least', 'b.known_most') }} AS ci_upper,
            CASE WHEN b.is_known THEN 'known' ELSE b.basis END AS basis
        )
    FROM (
    SELECT
            e.* EXCLUDE (unbiased, own_variance, group_unbiased, group_variance, own_ends, group_ends, draws),
            coalesce(e.draws IS NOT NULL AND (NOT e.has_bars OR e.group_variance < e.own_variance), false) AS is_grouped,
            CASE WHEN is_grouped THEN e.group_ends ELSE e.own_ends END AS ends,
            coalesce(
                e.draws IS NOT NULL AND e.has_bars
                    AND greatest(e.own_ends[1], e.group_ends[1]) <= least(e.own_ends[2], e.group_ends[2]),
                false
            ) AS is_shared,
            CASE WHEN is_shared THEN greatest(e.own_ends[1], e.group_ends[1]) ELSE ends[1] END AS ci_lower,
            CASE WHEN is_shared THEN least(e.own_ends[2], e.group_ends[2]) ELSE ends[2] END AS ci_upper,
            CASE
                WHEN is_shared THEN (ci_lower + ci_upper) / 2
                WHEN is_grouped THEN e.group_unbiased
                ELSE e.own_unbiased
            END AS unbiased,
            sqrt(CASE WHEN is_grouped THEN e.group_variance ELSE e.own_variance END) AS noise_error,
            CASE
                WHEN is_grouped THEN 'groups'
                WHEN NOT e.has_bars THEN 'noise_only'
                WHEN e.linear_variance IS NULL THEN 'unbiased'
                ELSE 'linear'
            END AS basis
        FROM (
            SELECT
                r.*,
                s.period IS NOT NULL AS has_sums,
                r.unbiased AS own_unbiased,
                coalesce(r.linear_variance, r.cells * r.noise_variance) AS own_variance,
                -- No cells need no draw.
                CASE WHEN r.cells > 0 THEN g.draws WHEN s.period IS NOT NULL AND NOT r.has_bars THEN 0 END AS draws,
                CASE WHEN r.cells > 0 THEN g.unbiased ELSE 0 END AS group_unbiased,
                CASE WHEN r.cells > 0 THEN g.variance ELSE 0 END AS group_variance,
                CASE
                    WHEN g.draws IS NULL THEN [r.unbiased - r.reach.one, r.unbiased + r.reach.one]
                    ELSE [r.unbiased - r.reach.two, r.unbiased + r.reach.two]
                END AS own_ends,
                CASE
                    WHEN s.period IS NULL THEN NULL
                    WHEN r.cells = 0 THEN [0, 0]
                    WHEN r.has_bars THEN [g.unbiased - g.reach.two, g.unbiased + g.reach.two]
                    ELSE [g.unbiased - g.reach.one, g.unbiased + g.reach.one]
                END AS group_ends
            FROM {{ rows | default('reaching') }} AS r
            LEFT JOIN group_sums AS g
                ON g.id = r.{{ id | default('name') }} AND g.period = r.period AND g.revision = r.revision AND g.cells = r.cells
            LEFT JOIN (SELECT DISTINCT n.period, n.revision FROM noisy_sums AS n) AS s
                ON s.period = r.period AND s.revision = r.revision
        ) AS e
    ) AS b
