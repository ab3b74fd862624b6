-- The beginning of a sentence on rows that the bound cut, from a row of `{row}`: which rows of each unit the quality table sees.
coalesce('among the first ' || {row}.seen || ' rows of each unit ({unseen}), ', '')
