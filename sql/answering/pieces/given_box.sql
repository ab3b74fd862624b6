-- A box as JSON, whatever it was given as: a text that is no JSON becomes a JSON text, which boxes refuse.
CASE WHEN {given} IS NOT NULL THEN coalesce(TRY_CAST({given} AS JSON), to_json(CAST({given} AS VARCHAR))) END
