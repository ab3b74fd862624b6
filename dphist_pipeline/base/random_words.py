"""Uniform random words from ChaCha20, with a new key of the operating system for every call.

The module keeps no state, so random words cannot be seeded, replayed or copied by a fork.
"""

from __future__ import annotations

import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

from dphist_pipeline.errors import Halted

# RFC 8439, appendix A.1, first test vector: key, nonce and counter 0.
CHACHA20_OF_ZEROS = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"


class NoiseSelfTestFailed(Halted):
    """The noise sampler of this machine failed its self-test; nothing was drawn for a release."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"the noise sampler failed its self-test ({what}), so nothing was released. "
            "Reinstall numpy and cryptography, and do not use this machine until `dphist release` passes."
        )


def random_words(size: int) -> NDArray[np.uint64]:
    """Uniform 64-bit words from ChaCha20 with a new key of the operating system.

    Returns:
        uint64, shape (size,).
    """
    return _keystream(os.urandom(32), os.urandom(8), size)


def _keystream(key: bytes, nonce: bytes, size: int) -> NDArray[np.uint64]:
    # In OpenSSL's ChaCha20, the first half of the 16-byte nonce is the block counter.
    stream = Cipher(ChaCha20(key, bytes(8) + nonce), mode=None).encryptor()
    return np.frombuffer(stream.update(bytes(8 * size)), dtype=np.uint64)


def check_random_words() -> None:
    """Checks the cipher with its test vector, and that the operating system does not repeat its random numbers."""
    block = _keystream(bytes(32), bytes(8), 4).tobytes().hex()
    if block != CHACHA20_OF_ZEROS:
        raise NoiseSelfTestFailed("ChaCha20 gives another key stream than its standard")
    if np.array_equal(random_words(8), random_words(8)):
        raise NoiseSelfTestFailed("the operating system repeats its random numbers")
