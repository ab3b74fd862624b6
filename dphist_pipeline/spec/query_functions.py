"""The functions that any query over the records may call, by name.

A query that an operator allowed is not judged row by row, but it still calls only functions from this list: aggregates,
window functions, and scalar functions whose result depends on their arguments alone. Missing are functions that look
outside the query (`getenv`, `current_setting`, `read_csv`, `glob`, `query`), that give something else every time
(`random`, `now`, `nextval`), that write (`write_log`), that raise with a value in their message (`error`), and that
take the name of another function as text (`list_aggregate`).
"""

from __future__ import annotations

from dphist_pipeline.spec import row_functions


def _names(lines: str) -> frozenset[str]:
    return frozenset(lines.split())


OPERATORS = _names("+ - * / // % ** ^ & | << >> ~ ! @ || ~~ !~~ ~~* !~~* ~~~ ^@ && @> <@ ->>")

AGGREGATES = _names(
    """
    any_value approx_count_distinct approx_quantile arbitrary arg_max arg_max_null arg_min arg_min_null argmax argmin
    array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count count_if count_star countif covar_pop covar_samp
    entropy favg first fsum geomean geometric_mean group_concat histogram kahan_sum kurtosis kurtosis_pop last list
    listagg mad max max_by mean median min min_by mode product quantile quantile_cont quantile_disc regr_avgx regr_avgy
    regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy sem skewness stddev stddev_pop stddev_samp
    string_agg sum sumkahan var_pop var_samp variance
    """
)

WINDOWS = _names(
    "cume_dist dense_rank fill first_value lag last_value lead nth_value ntile percent_rank rank rank_dense row_number"
)

SCALARS = _names(
    """
    abs acos add ascii asin atan atan2 base64 bin bit_count bit_length cardinality cbrt ceil ceiling century char_length
    character_length chr concat concat_ws contains cos cot date_add date_diff date_part date_sub date_trunc datediff
    datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear days_in_month decade decode degrees divide
    encode ends_with epoch epoch_ms epoch_ns epoch_us era even exp factorial fdiv floor fmod format from_base64
    from_hex gamma gcd greatest greatest_common_divisor hamming hash hex hour if ilike_escape instr isfinite isinf isnan
    isodow isoyear jaccard jaro_similarity jaro_winkler_similarity julian last_day lcase lcm least
    least_common_multiple left left_grapheme len length length_grapheme levenshtein lgamma like_escape ln log log10 log2
    lower lpad ltrim make_date make_time make_timestamp make_timestamptz md5 md5_number microsecond millennium
    millisecond minute mismatches mod month monthname multiply nanosecond nextafter nfc_normalize not_ilike_escape
    not_like_escape nullif octet_length ord overlay pi position pow power prefix printf quarter radians regexp_escape
    regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array repeat
    replace reverse right right_grapheme round round_even roundbankers rpad rtrim second sha1 sha256 sign signbit sin
    split split_part sqrt starts_with str_split str_split_regex strftime string_split string_split_regex
    string_to_array strip_accents strlen strpos strptime substr substring substring_grapheme subtract suffix tan
    time_bucket timezone timezone_hour timezone_minute to_base to_base64 to_centuries to_days to_decades to_hex to_hours
    to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks
    to_years translate trim trunc try_strptime typeof ucase unhex unicode upper week weekday weekofyear xor year
    yearweek
    """
)

NESTED = _names(
    """
    array_append array_apply array_cat array_concat array_contains array_distinct array_extract array_filter array_has
    array_has_all array_has_any array_indexof array_intersect array_length array_position array_prepend array_reduce
    array_reverse array_reverse_sort array_select array_slice array_sort array_to_string array_transform array_unique
    array_value array_where array_zip element_at flatten generate_series json_array_length json_extract
    json_extract_string json_keys json_type json_valid json_value list_any_value list_append list_apply list_avg
    list_bool_and list_bool_or list_cat list_concat list_contains list_count list_distinct list_element list_extract
    list_filter list_first list_has list_has_all list_has_any list_indexof list_intersect list_last list_max list_median
    list_min list_mode list_pack list_position list_prepend list_product list_reduce list_resize list_reverse
    list_reverse_sort list_select list_slice list_sort list_stddev_pop list_stddev_samp list_sum list_transform
    list_unique list_value list_var_pop list_var_samp list_where list_zip map map_concat map_contains map_entries
    map_extract map_extract_value map_from_entries map_keys map_values range row struct_concat struct_extract
    struct_extract_at struct_insert struct_pack struct_update unnest unpivot_list
    """
)

TABLE_FUNCTIONS = _names("generate_series range unnest")

ALLOWED = (
    OPERATORS
    | AGGREGATES
    | WINDOWS
    | SCALARS
    | NESTED
    | frozenset(row_functions.FUNCTIONS)
    | frozenset((*row_functions.ALIKE, *row_functions.JOINING, row_functions.TRUNCATING))
)
