"""DuckDB for another process: runs statements that come as lines of JSON, and answers each with a line.

A script that imports nothing else, so that it starts in a tenth of a second; see `catalogue_process`. A line has a
statement and its parameters. In place of a statement, null closes the connection, and with settings opens another. The
answer is the rows, or the class and the message of DuckDB's error.
"""

import json
import sys
from typing import Any


def main() -> None:
    """Runs statements until standard input ends; the argument is where DuckDB is installed."""
    sys.path.append(sys.argv[1])
    import _duckdb as duckdb  # the compiled part alone: the rest of its package takes longer to load

    connection: Any = None
    for line in sys.stdin:
        statement, parameters = json.loads(line)
        answer: object = []
        try:
            if statement is not None:
                answer = connection.execute(statement, parameters).fetchall()
            elif parameters is not None:
                connection = duckdb.connect(config=parameters)
            elif connection is not None:  # a process that replaces a killed one has none yet
                connection.close()
        except duckdb.Error as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
