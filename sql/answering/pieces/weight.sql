-- The share of a cell that lies in a box: the product of the shares of the bins that the ends of the box cut.
CASE WHEN c.is_cut THEN list_product(list_transform(
                    c.allowed,
                    lambda k: CASE (t.cell_number // k.stride) % k.size
                        WHEN k.first THEN k.first_share
                        WHEN k.final THEN k.final_share
                        ELSE 1.0
                    END
                )) ELSE 1.0 END
