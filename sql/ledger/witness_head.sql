-- Body of the trigger before every row that is inserted into the table `head` of a witness on a server: refuses what
-- the program does not write, and an entry that is not later than the last one. Whether an entry is the ledger's, the
-- program compares (releasing/store.py). No braces around one word, and no sign of per cent.
BEGIN
    IF NEW.generation IS DISTINCT FROM (SELECT max(known.generation) FROM generation AS known WHERE known.store = NEW.store)
    THEN RAISE EXCEPTION 'not the generation of a store that is known'; END IF;
    IF NEW.number <= (SELECT max(made.number) FROM head AS made
        WHERE made.store = NEW.store AND made.generation = NEW.generation)
    THEN RAISE EXCEPTION 'a later entry is noted already' USING ERRCODE = 'DPH01'; END IF;
    IF NEW.hash !~ '^[0-9a-f]{64,64}$' OR NEW.number NOT BETWEEN 1 AND 1000000000
    THEN RAISE EXCEPTION 'not an entry as the witness holds one'; END IF;
    RETURN NEW;
END
