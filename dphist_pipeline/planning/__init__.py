"""What an engineer asks before spending: a draft of a spec, a rehearsal, a forecast. No record is read for it."""
