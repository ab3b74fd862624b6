-- Body of the trigger before every row that is inserted into the table `place` of a witness on a server: refuses what
-- the program does not write, such as a number that leaves no next one. `store` is the id of a confidential folder, or of
-- a store as in earlier versions. No braces around one word, and no sign of per cent.
BEGIN
    IF NEW.number IS DISTINCT FROM (SELECT coalesce(max(made.number), 0) + 1 FROM place AS made WHERE made.store = NEW.store)
    THEN RAISE EXCEPTION 'another row is in its place' USING ERRCODE = 'DPH01'; END IF;
    IF NEW.number > 1000000000 OR char_length(NEW.place) NOT BETWEEN 1 AND 10000
        OR NEW.store !~ '^[0-9A-Za-z]{32,32}$' AND NOT EXISTS (SELECT FROM generation AS known WHERE known.store = NEW.store)
    THEN RAISE EXCEPTION 'not a place as the witness holds one'; END IF;
    RETURN NEW;
END
