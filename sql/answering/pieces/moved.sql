-- The sentence on how far the bound moves an answer. In: beginning; what is moved; three numbers in words, and their unit.
{beginning} || 'the bound moves this {what} by about ' || {shift}
            || '{unit} (95 %: ' || {shift_lower} || ' to ' || {shift_upper} || ')'
