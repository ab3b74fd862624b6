-- Body of the trigger before every row that is inserted into ledger_entry on a server: refuses an entry that does not
-- follow from the last one, whose hash is not that of its contents, or that every later reading of the ledger would
-- refuse. Rules of charges, publications and notes are those of ledger/_replay.py and ledger/books.py; decisions are
-- signed, which no trigger can verify, and say themselves whether they wait for a second signature. PostgreSQL 13 or
-- later. Braces around one word hold letters of ledger/letters.py; no sign of per cent.
DECLARE
    last ledger_entry;
    opened jsonb;
    facts jsonb;
    written text[];  -- what is sealed; and the body, written anew
    year integer;
    charging constant boolean := NEW.kind = 'charged';
    stating constant boolean := NEW.kind IN ('published', 'rendered');  -- of values, or of pages
    noting constant boolean := NEW.kind IN ('approved', 'rejected', 'withdrawn');
    whole constant text := '^[1-9][0-9]{0,8}$';
    exact constant text := '^[1-9][0-9]{0,39}/[1-9][0-9]{0,30}$';
    disguised constant text := '[{disguised}]';
    said constant text := '[^{blank}]';
    waiting integer[];  -- decisions without effect: they wait for a second signature
    due integer;
    adopted_at integer;
    amount text;
    times bigint;
    top numeric;
    bottom numeric;
    spent numeric := 0;
    spent_bottom numeric := 1;
    total numeric;
    total_bottom numeric;
    shared numeric;
BEGIN
    SELECT * INTO last FROM ledger_entry ORDER BY number DESC LIMIT 1;
    IF NEW.number IS DISTINCT FROM coalesce(last.number, 0) + 1 OR NEW.previous_hash IS DISTINCT FROM last.hash
    THEN RAISE EXCEPTION 'the ledger only grows, entry by entry' USING ERRCODE = 'DPH01'; END IF;
    IF NEW.made_at IS DISTINCT FROM
        to_char(NEW.made_at::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    THEN RAISE EXCEPTION 'not a time as the ledger writes it'; END IF;
    -- What the owner of the table may do, who can do without triggers, others may not: name a later year than this one.
    IF NOT pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER') THEN
        IF NEW.made_at::timestamptz > now() + interval '1 day'
        THEN RAISE EXCEPTION 'the time is ahead of the server''s clock' USING ERRCODE = '22008'; END IF;
        IF (charging OR noting OR stating) AND (octet_length(NEW.body) > 50000
            OR NEW.release !~ '^[A-Za-z_][A-Za-z0-9_]{0,199}$'
            OR NEW.period !~ '^(all|[0-9]{4,4}-[0-9]{2,2}-[0-9]{2,2})$')
        THEN RAISE EXCEPTION 'not a release and a period as specs name them'; END IF;
    END IF;
    facts := NEW.body::jsonb;
    year := greatest(left(NEW.made_at, 4)::integer, (last.body::jsonb->>'year')::integer);
    written := ARRAY[
        '{"account":' || coalesce(to_json(NEW.account)::text, 'null') || ',"body":' || to_json(NEW.body)::text
        || ',"kind":' || to_json(NEW.kind)::text || ',"made_at":' || to_json(NEW.made_at)::text
        || ',"number":' || NEW.number || ',"period":' || coalesce(to_json(NEW.period)::text, 'null')
        || ',"previous_hash":' || coalesce(to_json(NEW.previous_hash)::text, 'null')
        || ',"release":' || coalesce(to_json(NEW.release)::text, 'null')
        || ',"revision":' || coalesce(NEW.revision::text, 'null') || '}',
        CASE
        WHEN charging THEN '{'
            || CASE WHEN facts ? 'allowed' THEN '"allowed":[' || (SELECT string_agg(one.number, ',' ORDER BY one.place)
                FROM jsonb_array_elements_text(facts->'allowed') WITH ORDINALITY AS one(number, place)) || '],'
                ELSE '' END
            || '"digest":' || to_json(facts->>'digest')::text || ',"epsilon":' || to_json(facts->>'epsilon')::text
            || CASE WHEN facts ? 'folder' THEN ',"folder":{"host":' || to_json(facts->'folder'->>'host')::text
                || ',"id":' || to_json(facts->'folder'->>'id')::text || '}' ELSE '' END
            || CASE WHEN facts ? 'held' THEN ',"held":true' ELSE '' END
            || CASE WHEN facts ? 'nonce' THEN ',"nonce":' || to_json(facts->>'nonce')::text ELSE '' END
            || ',"reason":' || to_json(facts->>'reason')::text
            || CASE WHEN facts ? 'upstream_checked'
                THEN ',"upstream_checked":' || to_json(facts->>'upstream_checked')::text ELSE '' END
            || ',"year":' || year || '}'
        WHEN stating THEN '{"charge":' || (facts->>'charge')
            || ',"digest":' || to_json(facts->>'digest')::text || ',"year":' || year || '}'
        WHEN noting THEN '{"charge":' || (facts->>'charge')
            || ',"text":' || to_json(facts->>'text')::text || ',"year":' || year || '}'
        ELSE NEW.body
        END
    ];
    FOR which IN 1..2 LOOP
        IF written[which] ~ '[^ -~]' COLLATE "C" THEN
            written[which] := (SELECT string_agg(
                CASE
                WHEN ascii(one.sign) < 127 THEN one.sign
                WHEN ascii(one.sign) < 65536 THEN '\u' || lpad(to_hex(ascii(one.sign)), 4, '0')
                ELSE '\u' || to_hex(55296 + ((ascii(one.sign) - 65536) >> 10))
                    || '\u' || to_hex(56320 + ((ascii(one.sign) - 65536) & 1023))
                END, '' ORDER BY one.place)
            FROM regexp_split_to_table(written[which], '') WITH ORDINALITY AS one(sign, place));
        END IF;
    END LOOP;
    IF NEW.hash IS DISTINCT FROM encode(sha256(convert_to(written[1], 'UTF8')), 'hex')
    THEN RAISE EXCEPTION 'its contents do not fit its hash'; END IF;
    IF NEW.body IS DISTINCT FROM written[2]
    THEN RAISE EXCEPTION 'not a body of an entry of its kind, as the ledger writes it'; END IF;
    IF NOT (charging OR noting OR stating) THEN RETURN NEW; END IF;

    -- Comparisons with what is null refuse nothing.
    IF NEW.account IS NULL OR NEW.release IS NULL OR NEW.period IS NULL OR NEW.revision IS NULL OR NEW.revision < 1
    THEN RAISE EXCEPTION 'it is of no revision of a release'; END IF;
    IF EXISTS (
        SELECT FROM (VALUES (NEW.account, 200), (NEW.release, 200), (NEW.period, 200), (facts->>'digest', 200),
            (nullif(facts->>'reason', ''), 2000), (facts->>'upstream_checked', 2000), (facts->>'nonce', 200),
            (facts->'folder'->>'host', 200), (facts->'folder'->>'id', 200), (facts->>'text', 2000)) AS of(it, longest)
        WHERE char_length(of.it) NOT BETWEEN 1 AND of.longest OR of.it ~ disguised)
    THEN RAISE EXCEPTION 'a text that the ledger does not take'; END IF;
    IF noting AND facts->>'text' !~ said THEN RAISE EXCEPTION 'a note that says nothing'; END IF;

    waiting := ARRAY(
        SELECT number FROM ledger_entry WHERE account IN (NEW.account, '*')
            AND kind IN ('allowed', 'disallowed', 'raised', 'adopted') AND body::jsonb ? 'waits'
        UNION SELECT jsonb_array_elements_text(body::jsonb->'waiting')::integer FROM ledger_entry
            WHERE account = '*' AND kind = 'listed'
        EXCEPT SELECT (body::jsonb->>'decision')::integer FROM ledger_entry
            WHERE account IN (NEW.account, '*') AND kind = 'countersigned');

    IF NOT charging THEN
        IF facts->>'charge' !~ whole THEN RAISE EXCEPTION 'it is about what was not charged'; END IF;
        IF NOT EXISTS (
            SELECT FROM ledger_entry AS made WHERE made.number = (facts->>'charge')::integer AND made.kind = 'charged'
            AND (made.account, made.release, made.period, made.revision)
                = (NEW.account, NEW.release, NEW.period, NEW.revision)
        ) AND (
            EXISTS (SELECT FROM ledger_entry AS made WHERE made.kind = 'charged'
                AND (made.release, made.period, made.revision) = (NEW.release, NEW.period, NEW.revision))
            -- A charge that was lost, which an adoption carried over; of several, the first one stands.
            OR (SELECT (lost.charge->>'number', lost.charge->>'account') IS DISTINCT FROM (facts->>'charge', NEW.account)
                FROM ledger_entry AS adopted,
                    jsonb_array_elements(adopted.body::jsonb->'carried') WITH ORDINALITY AS lost(charge, place)
                WHERE adopted.account = '*' AND adopted.kind = 'adopted' AND adopted.number <> ALL (waiting)
                AND lost.charge->>'release' = NEW.release
                AND lost.charge->>'period' = NEW.period AND (lost.charge->>'revision')::integer = NEW.revision
                ORDER BY adopted.number, lost.place LIMIT 1) IS DISTINCT FROM false
        ) THEN RAISE EXCEPTION 'it is about what was not charged'; END IF;
        IF EXISTS (
            SELECT FROM ledger_entry AS made WHERE (made.release, made.period, made.revision)
                = (NEW.release, NEW.period, NEW.revision)
            AND ((made.kind = NEW.kind AND (NEW.kind <> 'rendered' OR made.body::jsonb->>'digest' = facts->>'digest'))
                OR (made.kind = 'rejected' AND NEW.kind <> 'rejected')
                OR (made.kind = 'published' AND NEW.kind = 'rejected'))
            AND made.body::jsonb->>'charge' = facts->>'charge')
        THEN RAISE EXCEPTION 'it is entered a second time, or of what was rejected or published'; END IF;
        IF NEW.kind = 'rendered' AND NOT EXISTS (
            SELECT FROM ledger_entry AS made WHERE made.kind = 'published' AND (made.release, made.period, made.revision)
                = (NEW.release, NEW.period, NEW.revision) AND made.body::jsonb->>'charge' = facts->>'charge')
        THEN RAISE EXCEPTION 'pages of what was not published'; END IF;
        RETURN NEW;
    END IF;

    IF EXISTS (SELECT FROM ledger_entry WHERE kind = 'opened' AND body::jsonb->'signatures' = '2')
        AND NOT EXISTS (SELECT FROM ledger_entry WHERE kind = 'listed'
            OR (account IS NOT NULL AND release IS NULL AND body::jsonb ? 'stated'))
    THEN RAISE EXCEPTION 'no entry says which decisions of an earlier version wait: run dphist ledger upgrade'; END IF;
    SELECT body::jsonb INTO opened FROM ledger_entry WHERE account = NEW.account AND kind = 'opened';
    IF NOT FOUND THEN RAISE EXCEPTION 'an account that was never opened'; END IF;
    SELECT coalesce(max(number), 0) INTO adopted_at FROM ledger_entry
        WHERE account = '*' AND kind = 'adopted' AND number <> ALL (waiting);

    SELECT 1 + greatest(
        (SELECT max(revision) FROM ledger_entry
            WHERE release = NEW.release AND period = NEW.period AND kind = 'charged'),
        (SELECT max((lost.charge->>'revision')::integer)
            FROM ledger_entry AS adopted, jsonb_array_elements(adopted.body::jsonb->'carried') AS lost(charge)
            WHERE adopted.account = '*' AND adopted.kind = 'adopted' AND adopted.number <> ALL (waiting)
            AND lost.charge->>'release' = NEW.release AND lost.charge->>'period' = NEW.period),
        0) INTO due;
    IF NEW.revision <> due OR due > 1000000 THEN RAISE EXCEPTION 'a revision that is not the next one'; END IF;
    IF due > 1 AND facts->>'reason' !~ said THEN RAISE EXCEPTION 'a revision without a reason'; END IF;
    IF EXISTS (
        SELECT FROM ledger_entry AS made
        WHERE made.release = NEW.release AND made.period = NEW.period AND made.kind = 'charged'
        AND made.number > adopted_at AND made.body::jsonb->'folder'->>'id' <> facts->'folder'->>'id'
        AND NOT EXISTS (
            SELECT FROM ledger_entry AS done WHERE done.kind IN ('published', 'rejected', 'withdrawn')
            AND (done.release, done.period, done.revision) = (made.release, made.period, made.revision)
            AND (done.body::jsonb->>'charge')::integer = made.number))
    THEN RAISE EXCEPTION 'a revision of what another host has not finished'; END IF;

    IF NOT facts ? 'allowed' AND (
        EXISTS (SELECT FROM ledger_entry WHERE account = '*' AND kind = 'keyed')
        OR (SELECT body::jsonb ? 'operator' FROM ledger_entry WHERE number = 1))
    THEN RAISE EXCEPTION 'a charge without a decision that allows it'; END IF;
    FOR amount IN SELECT jsonb_array_elements_text(facts->'allowed') LOOP
        IF amount !~ whole THEN RAISE EXCEPTION 'a decision is named by its number'; END IF;
        IF NOT EXISTS (
            SELECT FROM ledger_entry AS made
            WHERE made.number = amount::integer AND made.account IN (NEW.account, '*') AND made.kind = 'allowed'
            AND made.number <> ALL (waiting)
            AND NOT EXISTS (
                SELECT FROM ledger_entry AS taken WHERE taken.account = made.account AND taken.kind = 'disallowed'
                AND (taken.body::jsonb->>'decision')::integer = made.number AND taken.number <> ALL (waiting)))
        THEN RAISE EXCEPTION 'a charge without a decision that allows it'; END IF;
    END LOOP;
    -- What an operator decided for all accounts, such as a version of an engine, allows no source.
    IF facts ? 'allowed' AND NOT EXISTS (
        SELECT FROM jsonb_array_elements_text(facts->'allowed') AS named(number)
        JOIN ledger_entry AS made ON made.number = named.number::integer AND made.account = NEW.account)
    THEN RAISE EXCEPTION 'a charge without a decision that allows it'; END IF;

    IF facts->>'epsilon' !~ exact THEN RAISE EXCEPTION 'not an epsilon as the ledger writes it'; END IF;
    top := split_part(facts->>'epsilon', '/', 1)::numeric;
    bottom := split_part(facts->>'epsilon', '/', 2)::numeric;
    IF gcd(top, bottom) <> 1 OR top * 1000000 < bottom OR top > bottom * 50 OR bottom > 1e30
    THEN RAISE EXCEPTION 'not an epsilon that the ledger takes'; END IF;
    FOR amount IN
        SELECT opened->>'total' UNION ALL SELECT body::jsonb->>'total' FROM ledger_entry
        WHERE account = NEW.account AND kind = 'raised' AND number <> ALL (waiting)
    LOOP
        IF total IS NULL OR split_part(amount, '/', 1)::numeric * total_bottom > total * split_part(amount, '/', 2)::numeric
        THEN total := split_part(amount, '/', 1)::numeric; total_bottom := split_part(amount, '/', 2)::numeric; END IF;
    END LOOP;
    FOR amount, times IN
        SELECT every.epsilon, count(*) FROM (
            SELECT body::jsonb->>'epsilon', body::jsonb->>'year', number FROM ledger_entry
            WHERE account = NEW.account AND kind = 'charged'
            UNION ALL SELECT lost.charge->>'epsilon', lost.charge->>'year', adopted.number
            FROM ledger_entry AS adopted, jsonb_array_elements(adopted.body::jsonb->'carried') AS lost(charge)
            WHERE adopted.account = '*' AND adopted.kind = 'adopted' AND adopted.number <> ALL (waiting)
                AND lost.charge->>'account' = NEW.account
            UNION ALL SELECT body::jsonb->'elsewhere'->>NEW.account, body::jsonb->>'year', number FROM ledger_entry
            WHERE account = '*' AND kind = 'adopted' AND number <> ALL (waiting)
                AND body::jsonb->'elsewhere' ? NEW.account
        ) AS every(epsilon, charged, stated) WHERE opened->>'renews' IS NULL OR every.charged = year::text
            -- What is dated later than a later adoption counts in the adoption's year as well.
            OR (every.charged::integer > year AND EXISTS (
                SELECT FROM ledger_entry AS adopted
                WHERE adopted.account = '*' AND adopted.kind = 'adopted' AND adopted.number <> ALL (waiting)
                AND adopted.number >= every.stated AND adopted.body::jsonb->>'year' = year::text))
        GROUP BY every.epsilon
    LOOP
        spent := spent * split_part(amount, '/', 2)::numeric + split_part(amount, '/', 1)::numeric * times * spent_bottom;
        spent_bottom := spent_bottom * split_part(amount, '/', 2)::numeric;
        shared := gcd(spent, spent_bottom);
        spent := div(spent, shared);
        spent_bottom := div(spent_bottom, shared);
    END LOOP;
    IF (spent * bottom + top * spent_bottom) * total_bottom > total * spent_bottom * bottom
    THEN RAISE EXCEPTION 'more than the account has left'; END IF;
    RETURN NEW;
END
