-- Body of the trigger before every row that is inserted into the table `answer` of a witness on a server: refuses what
-- the program does not write, such as an answer to a charge that nobody made. Whether an answer is the one in a
-- journal, the program compares (ledger/witness.py). No braces around one word, and no sign of per cent.
BEGIN
    IF NOT EXISTS (SELECT FROM charge AS made WHERE made.store = NEW.store AND made.hash = NEW.charge
        AND made.generation = (SELECT max(known.generation) FROM generation AS known WHERE known.store = NEW.store))
    THEN RAISE EXCEPTION 'an answer to what was not charged in the store''s generation'; END IF;
    IF NEW.digest !~ '^[0-9a-f]{64,64}$' OR char_length(NEW.step) NOT BETWEEN 1 AND 200
        OR NEW.step ~ '[\u0001-\u001f\u007f-\u009f]'
    THEN RAISE EXCEPTION 'not an answer as the witness holds one'; END IF;
    RETURN NEW;
END
