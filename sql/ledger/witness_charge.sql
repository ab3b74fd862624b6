-- Body of the trigger before every row that is inserted into the table `charge` of a witness on a server: refuses what
-- the program does not write, so that no row makes the witness unreadable. Whether a charge is one of the ledger's, the
-- program compares (ledger/witness.py). PostgreSQL 13 or later. No braces around one word, and no sign of per cent.
DECLARE
    top numeric;
    bottom numeric;
BEGIN
    IF NEW.generation IS DISTINCT FROM (SELECT max(known.generation) FROM generation AS known WHERE known.store = NEW.store)
    THEN RAISE EXCEPTION 'not the generation of a store that is known'; END IF;
    IF NEW.position IS DISTINCT FROM (SELECT coalesce(max(made.position), 0) + 1 FROM charge AS made
        WHERE made.store = NEW.store AND made.generation = NEW.generation)
    THEN RAISE EXCEPTION 'another row is in its place' USING ERRCODE = 'DPH01'; END IF;
    IF NEW.hash !~ '^[0-9a-f]{64,64}$' OR NEW.number NOT BETWEEN 1 AND 1000000000 OR NEW.year NOT BETWEEN 1000 AND 9999
        OR NEW.revision NOT BETWEEN 1 AND 1000000
        OR EXISTS (SELECT FROM (VALUES (NEW.account), (NEW.release), (NEW.period)) AS of(it)
            WHERE char_length(of.it) NOT BETWEEN 1 AND 200 OR of.it ~ '[\u0001-\u001f\u007f-\u009f]')
    THEN RAISE EXCEPTION 'not a charge as the witness holds one'; END IF;
    IF EXISTS (SELECT FROM charge AS made
        WHERE made.store = NEW.store AND made.generation = NEW.generation AND made.hash = NEW.hash)
    THEN RAISE EXCEPTION 'a charge that is held already'; END IF;
    -- As in the ledger, the owner of the tables may do what others may not: an adoption by the owner may carry on rows
    -- of a witness that took any.
    IF NOT pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER')
        AND (NEW.account !~ '^[a-z][a-z0-9_]{0,62}$' OR NEW.release !~ '^[A-Za-z_][A-Za-z0-9_]{0,199}$'
            OR NEW.period !~ '^(all|[0-9]{4,4}-[0-9]{2,2}-[0-9]{2,2})$'
            OR NEW.revision <> 1 + coalesce((SELECT max(made.revision) FROM charge AS made WHERE made.store = NEW.store
                AND made.generation = NEW.generation AND made.release = NEW.release AND made.period = NEW.period), 0))
    THEN RAISE EXCEPTION 'not the next revision of a release and a period as specs name them'; END IF;
    IF NEW.epsilon !~ '^[1-9][0-9]{0,39}/[1-9][0-9]{0,30}$'
    THEN RAISE EXCEPTION 'not an epsilon as the ledger writes it'; END IF;
    top := split_part(NEW.epsilon, '/', 1)::numeric;
    bottom := split_part(NEW.epsilon, '/', 2)::numeric;
    IF gcd(top, bottom) <> 1 OR top * 1000000 < bottom OR top > bottom * 50 OR bottom > 1e30
    THEN RAISE EXCEPTION 'not an epsilon that the ledger takes'; END IF;
    RETURN NEW;
END
