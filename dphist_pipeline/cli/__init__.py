"""The command line: one file for each command, in the four folders by which `dphist --help` lists them."""
