"""A mechanism's card as prose: in a terminal its labels stand in a column, on a page they begin paragraphs."""

from __future__ import annotations

import re

BLOCK = re.compile(r"\A```text\n(?P<card>.*?)\n```", re.DOTALL)
LABEL = re.compile(r"(?P<label>[A-Z][a-z]+): +(?P<rest>\S.*)")
CODE = re.compile(r"(`[^`]*`)")


def in_prose(reference: str) -> str:
    """The card as paragraphs; the table of settings behind it stays.

    Args:
        reference: of a mechanism, which begins with its card in a block.
    """
    found = BLOCK.match(reference)
    if found is None:
        raise ValueError("a mechanism's reference begins with its card")
    title, *lines = found["card"].splitlines()
    told: list[str] = [_escaped(title)]
    ended = True
    for line in lines:
        words, label = line.strip(), LABEL.fullmatch(line)
        if label is not None:
            told.append(f"**{label['label']}:** {_escaped(label['rest'])}")
        elif words and ended:
            told.append(_escaped(words))
        elif words:
            told[-1] += f" {_escaped(words)}"
        ended = not words
    return "\n\n".join(told) + reference[found.end() :]


def _escaped(text: str) -> str:
    """Text in which Markdown finds nothing but code between backticks."""
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\*_<\[\]#|])", r"\\\1", part) for part in CODE.split(text)
    )
