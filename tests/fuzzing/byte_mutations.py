"""Changes to an input: of bytes, of tokens, and what two inputs make together."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

LONGEST = 1 << 16

_TOKENS = re.compile(rb"\w+|\s+|[^\w\s]")
_BYTES = [0, 9, 10, 13, 32, 34, 39, 44, 45, 47, 58, 63, 91, 93, 123, 125, 127, 128, 0xBF, 0xC0, 0xED, 0xF4, 0xFE, 0xFF]
_TEXTS = ["é", "İ", "ß", "\ufeff", "\u2028", "\u202e", "\x85", "👩‍👧", "\U0010ffff", "x" * 300, "é" * 120, "１２"]
_PIECES = [b"", *(text.encode() for text in _TEXTS), b"\xed\xa0\x80", b"\xc3", b"\r\n", b"\xff\xfe", b"''", b'""']

Change = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def byte_change(choice: random.Random, content: bytes, corpus: Sequence[bytes]) -> bytes:
    """Some bytes put in, taken out, turned, repeated, cut off, or taken from another input."""
    start = choice.randrange(len(content) + 1)
    end = min(len(content), start + choice.choice([1, 1, 2, 4, 8, 40, 1000]))
    head, middle, tail = content[:start], content[start:end], content[end:]
    match choice.randrange(7):
        case 0:
            return head + bytes([choice.choice(_BYTES)]) + middle + tail
        case 1:
            return head + tail
        case 2:
            return head + bytes(byte ^ (1 << choice.randrange(8)) for byte in middle[:1]) + middle[1:] + tail
        case 3:
            return head + middle * choice.choice([2, 3, 60]) + tail
        case 4:
            return head
        case 5:
            return head + choice.choice(_PIECES) + middle + tail
        case _:
            other = choice.choice(corpus)
            return head + other[choice.randrange(len(other) + 1) :][: choice.choice([4, 30, 300])] + tail


def token_change(tokens: Sequence[bytes]) -> Change:
    """Words and signs replaced, put in, taken out, doubled or exchanged; `tokens` are those of the language."""

    def change(choice: random.Random, content: bytes, corpus: Sequence[bytes]) -> bytes:
        parts = _TOKENS.findall(content) or [b""]
        here, there = choice.randrange(len(parts)), choice.randrange(len(parts))
        match choice.randrange(6):
            case 0 | 1:
                parts[here] = choice.choice(tokens)
            case 2:
                parts.insert(here, choice.choice(tokens))
            case 3:
                del parts[here : here + choice.choice([1, 1, 3])]
            case 4:
                parts[here], parts[there] = parts[there], parts[here]
            case _:
                parts[here:here] = parts[there : there + choice.choice([1, 3, 9])]
        return b"".join(parts)

    return change


def mixed(*changes: Change, longest: int = LONGEST) -> Change:
    """A few changes one after the other, each of any kind; what grows too long is cut off."""

    def change(choice: random.Random, content: bytes, corpus: Sequence[bytes]) -> bytes:
        for _ in range(choice.choice([1, 1, 1, 2, 3, 6])):
            content = choice.choice(changes)(choice, content, corpus)[:longest]
        return content

    return change


def after_head(size: int, rest: Change) -> Change:
    """Changes what follows the first bytes, which are choices, and now and then one of those."""

    def change(choice: random.Random, content: bytes, corpus: Sequence[bytes]) -> bytes:
        head = bytearray(content[:size].ljust(size, b"\0"))
        if choice.random() < 0.2:
            head[choice.randrange(size)] = choice.randrange(256)
        return bytes(head) + rest(choice, content[size:], [other[size:] for other in corpus[-8:]])

    return change
