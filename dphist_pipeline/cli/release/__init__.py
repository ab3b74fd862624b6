"""Commands that publish: a period, what waits for a person, a collection under local privacy."""
