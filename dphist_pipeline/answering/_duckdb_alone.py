"""DuckDB for another process: runs statements that come as lines of JSON, and answers each with a line.

A script that imports nothing else, so that it starts in a tenth of a second; see `catalogue_process`. A line has a
statement and its parameters; null and settings open a new connection in place of the one before. The answer is the
rows, or the class and the message of DuckDB's error.
"""

import json
import sys


def main() -> None:
    """Runs statements until standard input ends; the argument is where DuckDB is installed."""
    sys.path.append(sys.argv[1])
    import duckdb

    connection = duckdb.connect()
    for line in sys.stdin:
        statement, parameters = json.loads(line)
        answer: object = []
        try:
            if statement is None:
                connection.close()
                connection = duckdb.connect(config=parameters)
            else:
                answer = connection.execute(statement, parameters).fetchall()
        except duckdb.Error as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
