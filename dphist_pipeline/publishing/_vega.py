"""Draws Vega-Lite charts as SVG by vl-convert, whose engine takes longer to start than to draw.

As a process of its own, it starts the engine at once, and then draws one chart after the other.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from dphist_pipeline import early_processes

Chart = dict[str, Any]
_processes: set[int] = set()  # in which the engine runs
FIRST: Chart = {
    "data": {"values": [{"name": "a", "count": 1}]},
    "layer": [{"mark": {"type": mark}} for mark in ("bar", "errorbar")],
    "encoding": {"x": {"field": "name", "type": "nominal"}, "y": {"field": "count", "type": "quantitative"}},
}


def draw_chart(chart: Chart) -> str:
    """Draws a chart as SVG that runs no script and loads nothing.

    The process that was started early draws it, if there is one. The engine is a thread, so a process that was forked
    after its start has none, and starts a process too.
    """
    early = early_processes.waiting(__name__)
    if early is not None and (answer := early_processes.ask(early, chart)):
        return str(json.loads(answer))
    if not _processes or os.getpid() in _processes:
        return _converted(chart)
    process = early_processes.start(__name__)
    try:
        return str(json.loads(early_processes.ask(process, chart)))
    finally:
        early_processes.end(process)


def _converted(chart: Chart) -> str:
    import vl_convert  # starts the engine

    _processes.add(os.getpid())
    return str(vl_convert.vegalite_to_svg(chart, allowed_base_urls=[]))


def main() -> None:
    """Runs in a separate process: a chart as a line of JSON on standard input, its SVG on standard output."""
    _converted(FIRST)
    for task in sys.stdin:
        sys.stdout.write(json.dumps(_converted(json.loads(task))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
